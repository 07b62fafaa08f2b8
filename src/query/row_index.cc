#include "query/row_index.h"

#include <algorithm>
#include <bit>

#include "base/string_pool.h"

namespace stepscope::query {
namespace {

std::uint64_t text_key(std::string_view text) { return StringPool::hash(text.data(), text.size()); }

}  // namespace

std::uint32_t RowIndex::bucket(std::uint64_t key) const {
  key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
  return static_cast<std::uint32_t>((key ^ (key >> 29)) & (heads_.size() - 1));
}

RowIndex::RowIndex(TableReaders& readers, std::size_t column) {
  std::uint32_t rows = 0;
  for (std::size_t trace = 0; trace < readers.traces(); trace++) {
    begin_.push_back(rows);
    rows += static_cast<std::uint32_t>(readers.rows(trace));
  }
  begin_.push_back(rows);
  heads_.assign(std::bit_ceil(std::max<std::size_t>(rows, 1)), kEnd);
  next_.assign(rows, kEnd);
  for (std::size_t trace = readers.traces(); trace-- > 0;) add_trace(readers, trace, column);
}

// From the last row to the first, so that the rows of a bucket come out in ascending order.
void RowIndex::add_trace(TableReaders& readers, std::size_t trace, std::size_t column) {
  const tables::ColumnReader& reader = readers.column(trace, column);
  const bool text = reader.type() == ValueType::text;
  std::vector<std::uint64_t> keys;
  for (std::uint32_t code = 0; text && code < reader.code_count(); code++) keys.push_back(text_key(reader.text(code)));
  const auto link = [&](std::size_t row, std::uint64_t key) {
    const auto all = static_cast<std::uint32_t>(begin_[trace] + row);
    std::uint32_t& head = heads_[bucket(key)];
    next_[all] = head;
    head = all;
  };
  std::vector<std::int64_t> numbers(Scan::kBlock);
  std::vector<std::uint32_t> codes(Scan::kBlock);
  for (std::size_t end = readers.rows(trace); end > 0;) {
    const std::size_t first = (end - 1) / Scan::kBlock * Scan::kBlock;
    if (text) {
      reader.codes(first, std::span(codes).first(end - first));
    } else {
      reader.integers(first, std::span(numbers).first(end - first));
    }
    for (std::size_t i = end - first; i-- > 0;) {
      if (text && codes[i] < keys.size()) link(first + i, keys[codes[i]]);
      if (!text && numbers[i] != kAbsent) link(first + i, static_cast<std::uint64_t>(numbers[i]));
    }
    end = first;
  }
}

std::uint32_t RowIndex::first(const Constant& value) const {
  if (const auto* text = std::get_if<std::string>(&value)) return heads_[bucket(text_key(*text))];
  const WholeRange range = whole_range({0, Compare::equal, {value}});
  return range.low > range.high ? kEnd : heads_[bucket(static_cast<std::uint64_t>(range.low))];
}

RowPlace RowIndex::place(std::uint32_t row) const {
  const auto trace =
      static_cast<std::uint32_t>(std::upper_bound(begin_.begin(), begin_.end(), row) - begin_.begin() - 1);
  return {trace, row - begin_[trace]};
}

}  // namespace stepscope::query
