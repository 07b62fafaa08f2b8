// ColumnReader: the values of one column of one trace, read in blocks of rows, whatever way they lie in memory.
//
// What each kind gives: integers (kAbsent: null; booleans as 0 and 1), reals (NaN: null) or codes of text (kNoCode:
// null). Blocks, because a call for each value would cost more than the value.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tables/table_spec.h"

namespace stepscope::tables {

class ColumnReader {
 public:
  // `spec` and `trace` must outlive the reader.
  ColumnReader(const ColumnSpec& spec, const Trace& trace);

  ValueType type() const { return type_; }

  // Rows [first, first + out.size()) of a column of integers or booleans.
  void integers(std::size_t first, std::span<std::int64_t> out) const;
  void reals(std::size_t first, std::span<double> out) const;
  void codes(std::size_t first, std::span<std::uint32_t> out) const;

  std::int64_t integer(std::size_t row) const;
  double real(std::size_t row) const;
  std::uint32_t code(std::size_t row) const;

  // Every code of this trace is smaller.
  std::size_t code_count() const;
  std::string_view text(std::uint32_t code) const;

  // The value for a caller that looks at single cells.
  Value value(std::size_t row) const;

 private:
  const ColumnSpec* spec_;
  const Trace* trace_;
  Borrowed borrowed_;
  ValueType type_;
};

}  // namespace stepscope::tables
