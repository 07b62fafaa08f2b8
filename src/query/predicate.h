// Predicate: one comparison of a column with constants, in a form that blocks of rows can be held against.
//
// The rules are those of SQLite for columns of one type: null never passes a comparison, text compares byte by byte,
// LIKE and GLOB are SQLite's own. What would need its conversions between types is refused (supported() is false) and
// left to SQLite.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tables/column_reader.h"

namespace stepscope::query {

enum class Compare : std::uint8_t { equal, not_equal, less, at_most, more, at_least, like, glob, is_null, not_null };

using Constant = std::variant<std::int64_t, double, std::string>;

struct Predicate {
  std::size_t column = 0;
  Compare compare = Compare::equal;
  std::vector<Constant> constants;  // equal: any of them; not_equal: none of them; the others: one
};

bool supported(ValueType type, const Predicate& predicate);

// The whole numbers that pass: those in [low, high], without the holes. Empty where low > high.
struct WholeRange {
  std::int64_t low = kAbsent + 1;
  std::int64_t high = INT64_MAX;
};
// The narrowest range that holds all whole numbers that pass.
WholeRange whole_range(const Predicate& predicate);

// A predicate ready for the columns of one trace.
class Filter {
 public:
  Filter(const Predicate& predicate, const tables::ColumnReader& column);

  // Keeps those of `rows` (numbers from `first`, ascending, below first + block) that pass.
  void keep(std::size_t first, std::size_t block, std::vector<std::uint32_t>& rows);

 private:
  bool passes(std::int64_t value) const;
  bool passes(double value) const;
  bool passes(std::string_view text) const;
  void keep_texts(std::size_t first, std::size_t block, std::vector<std::uint32_t>& rows);

  const Predicate& predicate_;
  const tables::ColumnReader& column_;
  WholeRange range_;
  std::vector<std::uint8_t> verdicts_;  // of a code: 0 not asked yet, 1 passes, 2 does not
};

}  // namespace stepscope::query
