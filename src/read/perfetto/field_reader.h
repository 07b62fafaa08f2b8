// Named values back into the rows of a table and the members of a part; what is not given gets the value that means so.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/json_text.h"
#include "model/trace_fields.h"
#include "read/perfetto/event.h"

namespace stepscope::read::perfetto {

// The values of a dictionary by name. Writers keep the order in which they are asked for, so the next one mostly fits.
class Fields {
 public:
  Fields(const Value& dict, const Sequence& sequence, bool& ok, std::uint64_t& unknown_texts)
      : sequence_(sequence), ok_(ok), unknown_texts_(unknown_texts) {
    if (dict.kind != Value::Kind::dict) return;
    each_entry(dict, sequence, ok, unknown_texts, [&](const Value& value) { values_.push_back(value); });
  }
  const Value* find(std::string_view name) {
    for (std::size_t i = 0; i < values_.size(); i++, next_++) {
      if (next_ >= values_.size()) next_ = 0;
      if (values_[next_].name == name) return &values_[next_++];
    }
    return nullptr;
  }
  std::int64_t number(std::string_view name, std::int64_t otherwise) {
    const Value* value = find(name);
    return value != nullptr && value->kind == Value::Kind::number ? value->number : otherwise;
  }
  std::optional<std::string_view> text(std::string_view name) {
    const Value* value = find(name);
    return value != nullptr && value->is_text() ? std::optional(value->text) : std::nullopt;
  }
  // Calls take(Fields of the item) for the dictionaries of a list.
  template <class Take>
  void each_item(std::string_view list, Take take) {
    const Value* value = find(list);
    if (value == nullptr || value->kind != Value::Kind::list) return;
    each_entry(*value, sequence_, ok_, unknown_texts_, [&](const Value& item) {
      Fields fields(item, sequence_, ok_, unknown_texts_);
      take(fields);
    });
  }
  template <class Take>
  void each_number(std::string_view list, Take take) {
    const Value* value = find(list);
    if (value == nullptr || value->kind != Value::Kind::list) return;
    each_entry(*value, sequence_, ok_, unknown_texts_, [&](const Value& item) {
      if (item.kind == Value::Kind::number) take(item.number);
    });
  }
  Fields dict(std::string_view name) {
    const Value* value = find(name);
    return Fields(value == nullptr ? Value() : *value, sequence_, ok_, unknown_texts_);
  }

 private:
  const Sequence& sequence_;
  bool& ok_;
  std::uint64_t& unknown_texts_;
  std::vector<Value> values_;
  std::size_t next_ = 0;
};

// Any bytes as texts of a trace.
class Texts {
 public:
  explicit Texts(StringPool& pool) : pool_(pool) {}
  StringId operator()(std::string_view bytes) {
    if (formats::is_clean(bytes)) return pool_.intern(bytes);
    bool repaired = false;
    const std::string clean = formats::visible(bytes, repaired);
    repaired_ += repaired ? 1 : 0;
    return pool_.intern(clean);
  }
  std::uint64_t repaired() const { return repaired_; }

 private:
  StringPool& pool_;
  std::uint64_t repaired_ = 0;
};

// Appends one row to a table.
class RowReader {
 public:
  RowReader(Fields& from, Texts& texts) : from_(from), texts_(texts) {}

  void operator()(std::string_view name, NarrowColumn& column) { column.push_back(from_.number(name, kAbsent)); }
  void operator()(std::string_view name, Column<StringId>& column) { column.push_back(text(name)); }
  void operator()(std::string_view name, OptionalColumn<StringId>& column) { column.push_back(text(name)); }
  template <std::floating_point T>
  void operator()(std::string_view name, Column<T>& column) {
    const Value* value = from_.find(name);
    const bool given = value != nullptr && value->kind == Value::Kind::real;
    column.push_back(given ? static_cast<T>(value->real) : std::numeric_limits<T>::quiet_NaN());
  }
  template <std::integral T, std::integral Absent>
  void operator()(std::string_view name, Column<T>& column, Absent absent) {
    const std::int64_t value = from_.number(name, static_cast<std::int64_t>(absent));
    column.push_back(std::in_range<T>(value) ? static_cast<T>(value) : static_cast<T>(absent));
  }

 private:
  StringId text(std::string_view name) {
    const auto given = from_.text(name);
    return given ? texts_(*given) : StringId::none;
  }

  Fields& from_;
  Texts& texts_;
};

// Fills the members of one part.
class PartReader {
 public:
  PartReader(Fields& from, Texts& texts) : from_(from), texts_(texts) {}

  void operator()(std::string_view name, bool& value) { value = from_.number(name, value ? 1 : 0) != 0; }
  template <std::integral T>
  void operator()(std::string_view name, T& value) {
    value = static_cast<T>(from_.number(name, static_cast<std::int64_t>(value)));
  }
  template <class T>
  requires std::is_enum_v<T>
  void operator()(std::string_view name, T& value, T last) {
    const std::int64_t number = from_.number(name, static_cast<std::int64_t>(value));
    if (number >= 0 && number <= static_cast<std::int64_t>(last)) value = static_cast<T>(number);
  }
  void operator()(std::string_view name, std::string& value) {
    bool repaired = false;
    if (const auto given = from_.text(name)) value = formats::visible(*given, repaired);
  }
  void operator()(std::string_view name, StringId& value) {
    if (const auto given = from_.text(name)) value = texts_(*given);
  }
  void operator()(std::string_view name, std::optional<std::uint64_t>& value) {
    if (const Value* given = from_.find(name)) value = static_cast<std::uint64_t>(given->number);
  }
  void operator()(std::string_view name, std::vector<std::int64_t>& values) {
    from_.each_number(name, [&](std::int64_t value) { values.push_back(value); });
  }

 private:
  Fields& from_;
  Texts& texts_;
};

}  // namespace stepscope::read::perfetto
