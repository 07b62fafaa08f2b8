// Scan: the rows of a table of the model that pass some predicates, block by block over all ranks.
//
// Predicates on columns whose order is known narrow the rows before any is read, so that looking up one slice of one
// rank costs a few nanoseconds and not a pass over the table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "query/predicate.h"
#include "tables/column_reader.h"

namespace stepscope::query {

// The columns of one table for all traces, made when first asked for.
class TableReaders {
 public:
  TableReaders(const tables::TableSpec& spec, const Run& run);

  const tables::TableSpec& spec() const { return spec_; }
  std::size_t traces() const { return readers_.size(); }
  std::size_t rows(std::size_t trace) const { return rows_[trace]; }
  const tables::ColumnReader& column(std::size_t trace, std::size_t column);

 private:
  const tables::TableSpec& spec_;
  const Run& run_;
  std::vector<std::size_t> rows_;
  std::vector<std::vector<std::optional<tables::ColumnReader>>> readers_;  // [trace][column]
};

class Scan {
 public:
  static constexpr std::size_t kBlock = 4096;

  // All predicates must be supported by the type of their column.
  Scan(TableReaders& readers, std::vector<Predicate> predicates);
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // To the next block with a row that passes; false at the end.
  bool next();

  std::size_t trace() const { return trace_; }
  // The block covers rows [first, first + size) of the trace; `rows` are those that pass, ascending.
  std::size_t first() const { return first_; }
  std::size_t size() const { return size_; }
  std::span<const std::uint32_t> rows() const { return rows_; }

 private:
  void enter_trace();
  void narrow(const Predicate& predicate);

  TableReaders& readers_;
  std::vector<Predicate> predicates_;
  std::vector<Filter> filters_;  // of the predicates that are not decided by narrowing
  std::vector<std::uint32_t> rows_;
  std::size_t trace_ = 0, first_ = 0, size_ = 0;
  std::size_t next_ = 0, end_ = 0;  // of the trace
  bool entered_ = false;
};

}  // namespace stepscope::query
