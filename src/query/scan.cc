#include "query/scan.h"

#include <algorithm>
#include <numeric>

namespace stepscope::query {

using tables::ColumnReader;
using tables::Order;

TableReaders::TableReaders(const tables::TableSpec& spec, const Run& run) : spec_(spec), run_(run) {
  for (const Trace& trace : run.*spec.traces) rows_.push_back(spec.rows(trace));
  readers_.resize(rows_.size());
}

const ColumnReader& TableReaders::column(std::size_t trace, std::size_t column) {
  auto& columns = readers_[trace];
  if (columns.empty()) columns.resize(spec_.columns.size());
  auto& reader = columns[column];
  if (!reader) reader.emplace(spec_.columns[column], (run_.*spec_.traces)[trace]);
  return *reader;
}

Scan::Scan(TableReaders& readers, std::vector<Predicate> predicates)
    : readers_(readers), predicates_(std::move(predicates)) {
  filters_.reserve(predicates_.size());  // filters refer to predicates and are made anew for each trace
}

// Cuts [next_, end_) down to rows that can pass; decided for good for one comparison of a column whose order is known.
void Scan::narrow(const Predicate& predicate) {
  const tables::ColumnSpec& spec = readers_.spec().columns[predicate.column];
  const ColumnReader& column = readers_.column(trace_, predicate.column);
  const bool one = predicate.constants.size() == 1 && predicate.compare != Compare::not_equal;
  if (spec.order == Order::none || !one || next_ == end_ || column.type() != ValueType::integer) {
    filters_.emplace_back(predicate, column);
    return;
  }
  const WholeRange range = whole_range(predicate);
  const auto bound = [&](std::int64_t value) {  // first row in [next_, end_) that is at least `value`
    std::size_t low = next_, high = end_;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (column.integer(middle) < value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  const std::size_t begin = range.low > range.high ? end_ : bound(range.low);
  const std::size_t end = range.low > range.high || range.high == INT64_MAX ? end_ : bound(range.high + 1);
  next_ = begin;
  end_ = std::max(begin, end);
}

void Scan::enter_trace() {
  entered_ = true;
  next_ = 0;
  end_ = readers_.rows(trace_);
  filters_.clear();
  for (const Predicate& predicate : predicates_) narrow(predicate);
}

bool Scan::next() {
  for (; trace_ < readers_.traces(); trace_++, entered_ = false) {
    if (!entered_) enter_trace();
    while (next_ < end_) {
      first_ = next_;
      size_ = std::min(kBlock, end_ - next_);
      next_ += size_;
      rows_.resize(size_);
      std::iota(rows_.begin(), rows_.end(), static_cast<std::uint32_t>(first_));
      for (Filter& filter : filters_) filter.keep(first_, size_, rows_);
      if (!rows_.empty()) return true;
    }
  }
  return false;
}

}  // namespace stepscope::query
