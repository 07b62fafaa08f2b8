// RowIndex: the rows of a column by value, over all traces, for joins on columns whose order says nothing.
//
// SQLite makes no index of a virtual table, so a join without one would be a pass over the table for each row. A bucket
// holds all rows of a value and a few of others; the caller compares again.
#pragma once

#include <cstdint>
#include <vector>

#include "query/scan.h"

namespace stepscope::query {

struct RowPlace {
  std::uint32_t trace = 0, row = 0;
};

class RowIndex {
 public:
  RowIndex(TableReaders& readers, std::size_t column);

  static constexpr std::uint32_t kEnd = 0xffffffff;
  // The first row that may hold the value, and the one after `row` (rows are counted over all traces).
  std::uint32_t first(const Constant& value) const;
  std::uint32_t after(std::uint32_t row) const { return next_[row]; }
  RowPlace place(std::uint32_t row) const;

 private:
  std::uint32_t bucket(std::uint64_t key) const;
  void add_trace(TableReaders& readers, std::size_t trace, std::size_t column);

  std::vector<std::uint32_t> begin_;  // rows before each trace, and all rows
  std::vector<std::uint32_t> heads_;  // a power of two
  std::vector<std::uint32_t> next_;
};

}  // namespace stepscope::query
