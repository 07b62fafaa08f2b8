// The fields of a row or a part as named annotations: what is not given is left out.
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/trace_fields.h"
#include "write/perfetto/packets.h"

namespace stepscope::write::perfetto {

// One row of a table.
class RowWriter {
 public:
  RowWriter(Annotations& to, std::size_t row) : to_(to), row_(row) {}

  void operator()(std::string_view name, const NarrowColumn& column) const {
    if (column.has(row_)) to_.number(name, column[row_]);
  }
  void operator()(std::string_view name, const Column<StringId>& column) const {
    if (column[row_] != StringId::none) to_.text(name, column[row_]);
  }
  void operator()(std::string_view name, const OptionalColumn<StringId>& column) const {
    if (column[row_] != StringId::none) to_.text(name, column[row_]);
  }
  template <std::floating_point T>
  void operator()(std::string_view name, const Column<T>& column) const {
    if (!std::isnan(column[row_])) to_.real(name, static_cast<double>(column[row_]));
  }
  template <std::integral T, std::integral Absent>
  void operator()(std::string_view name, const Column<T>& column, Absent absent) const {
    if (column[row_] != static_cast<T>(absent)) to_.number(name, static_cast<std::int64_t>(column[row_]));
  }

 private:
  Annotations& to_;
  std::size_t row_;
};

// The members of one part.
class PartWriter {
 public:
  explicit PartWriter(Annotations& to) : to_(to) {}

  template <std::integral T>
  void operator()(std::string_view name, T value) const {
    to_.number(name, static_cast<std::int64_t>(value));
  }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(std::string_view name, T value, T) const { to_.number(name, static_cast<std::int64_t>(value)); }
  void operator()(std::string_view name, const std::string& value) const { to_.words(name, value); }
  void operator()(std::string_view name, StringId value) const {
    if (value != StringId::none) to_.text(name, value);
  }
  void operator()(std::string_view name, const std::optional<std::uint64_t>& value) const {
    if (value) to_.number(name, static_cast<std::int64_t>(*value));
  }
  void operator()(std::string_view name, const std::vector<std::int64_t>& values) const {
    to_.begin_list(name);
    for (const std::int64_t value : values) to_.item(value);
    to_.end();
  }

 private:
  Annotations& to_;
};

}  // namespace stepscope::write::perfetto
