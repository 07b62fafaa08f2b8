#include "query/aggregate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "query/group_keys.h"
#include "query/limits.h"
#include "query/simple_select.h"

namespace stepscope::query {
namespace {

// The running value of one item in every group.
class Accumulator {
 public:
  Accumulator(const SelectItem& item, ValueType type) : item_(item), type_(type) {}

  // False: a sum no longer fits 64 bits.
  bool add(TableReaders& readers, const Scan& scan, std::span<const std::uint32_t> groups, std::size_t group_count) {
    counts_.resize(group_count);
    if (item_.aggregate == Aggregate::count_rows) {
      for (const std::uint32_t group : groups) counts_[group]++;
      return true;
    }
    const tables::ColumnReader& reader = readers.column(scan.trace(), item_.column);
    if (type_ == ValueType::text) return add_texts(reader, scan, groups), true;
    if (type_ == ValueType::real) return add_reals(reader, scan, groups), true;
    return add_wholes(reader, scan, groups);
  }

  Value value(std::uint32_t group) const {
    const bool seen = group < counts_.size() && counts_[group] > 0;
    switch (item_.aggregate) {
      case Aggregate::none: return {};
      case Aggregate::count_rows:
      case Aggregate::count: return group < counts_.size() ? counts_[group] : 0;
      case Aggregate::total: return seen ? reals_[group] : 0.0;
      case Aggregate::avg: return seen ? Value(reals_[group] / static_cast<double>(counts_[group])) : Value();
      case Aggregate::sum:
      case Aggregate::min:
      case Aggregate::max: break;
    }
    if (!seen) return {};
    if (type_ == ValueType::text) return std::string(texts_[group]);
    return type_ == ValueType::real ? Value(reals_[group]) : Value(wholes_[group]);
  }

 private:
  bool better(bool less, bool more) const { return item_.aggregate == Aggregate::min ? less : more; }

  void add_texts(const tables::ColumnReader& reader, const Scan& scan, std::span<const std::uint32_t> groups) {
    codes_.resize(scan.size());
    reader.codes(scan.first(), codes_);
    texts_.resize(counts_.size());
    const std::size_t count = reader.code_count();
    for (std::size_t i = 0; i < groups.size(); i++) {
      const std::uint32_t code = codes_[scan.rows()[i] - scan.first()];
      if (code >= count) continue;
      const std::uint32_t group = groups[i];
      const bool first = counts_[group]++ == 0;
      if (item_.aggregate == Aggregate::count) continue;
      const std::string_view text = reader.text(code);
      if (first || better(text<texts_[group], text> texts_[group])) texts_[group] = text;
    }
  }

  void add_reals(const tables::ColumnReader& reader, const Scan& scan, std::span<const std::uint32_t> groups) {
    block_reals_.resize(scan.size());
    reader.reals(scan.first(), block_reals_);
    reals_.resize(counts_.size());
    for (std::size_t i = 0; i < groups.size(); i++) {
      const double value = block_reals_[scan.rows()[i] - scan.first()];
      if (std::isnan(value)) continue;
      const bool first = counts_[groups[i]]++ == 0;
      double& kept = reals_[groups[i]];
      if (item_.aggregate == Aggregate::min || item_.aggregate == Aggregate::max) {
        if (first || better(value<kept, value> kept)) kept = value;
      } else {
        kept += value;
      }
    }
  }

  bool add_wholes(const tables::ColumnReader& reader, const Scan& scan, std::span<const std::uint32_t> groups) {
    block_wholes_.resize(scan.size());
    reader.integers(scan.first(), block_wholes_);
    wholes_.resize(counts_.size());
    reals_.resize(counts_.size());
    bool fits = true;
    for (std::size_t i = 0; i < groups.size(); i++) {
      const std::int64_t value = block_wholes_[scan.rows()[i] - scan.first()];
      if (value == kAbsent) continue;
      const bool first = counts_[groups[i]]++ == 0;
      std::int64_t& kept = wholes_[groups[i]];
      switch (item_.aggregate) {
        case Aggregate::sum: fits &= !__builtin_add_overflow(kept, value, &kept); break;
        case Aggregate::total:
        case Aggregate::avg: reals_[groups[i]] += static_cast<double>(value); break;
        case Aggregate::min:
        case Aggregate::max:
          if (first || better(value<kept, value> kept)) kept = value;
          break;
        default: break;
      }
    }
    return fits;
  }

  const SelectItem& item_;
  ValueType type_;
  std::vector<std::int64_t> counts_, wholes_;  // by group
  std::vector<double> reals_;
  std::vector<std::string_view> texts_;  // of the run
  std::vector<std::uint32_t> codes_;     // of the block
  std::vector<std::int64_t> block_wholes_;
  std::vector<double> block_reals_;
};

// SQLite's order: null, then numbers, then texts byte by byte.
int compare(const Value& a, const Value& b) {
  const auto rank = [](const Value& v) {
    return std::holds_alternative<std::monostate>(v) ? 0 : std::holds_alternative<std::string>(v) ? 2 : 1;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b) ? -1 : 1;
  return a < b ? -1 : b < a ? 1 : 0;  // of one type, because a column has one
}

struct Groups {
  GroupKeys keys;
  std::vector<Accumulator> accumulators;  // one for each item

  Value cell(const SimpleSelect& select, std::uint32_t group, std::size_t item) const {
    if (select.items[item].aggregate != Aggregate::none) return accumulators[item].value(group);
    const auto at = std::find(select.group.begin(), select.group.end(), select.items[item].column);
    return keys.value(group, static_cast<std::size_t>(at - select.group.begin()));
  }
};

// Groups in the order of their keys, which is how SQLite makes them, then in the order asked for.
std::vector<std::uint32_t> ordered(const SimpleSelect& select, const Groups& groups) {
  std::vector<std::uint32_t> order(groups.keys.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto sort_by = [&](bool descending, auto&& cell) {
    std::vector<Value> values;
    values.reserve(order.size());
    for (std::uint32_t group = 0; group < order.size(); group++) values.push_back(cell(group));
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const int less = compare(values[a], values[b]);
      return descending ? less > 0 : less < 0;
    });
  };
  for (std::size_t i = select.group.size(); i-- > 0;) {
    sort_by(false, [&](std::uint32_t group) { return groups.keys.value(group, i); });
  }
  for (auto term = select.order.rbegin(); term != select.order.rend(); ++term) {
    sort_by(term->descending, [&](std::uint32_t group) { return groups.cell(select, group, term->item); });
  }
  return order;
}

void write(const SimpleSelect& select, const Groups& groups, RowSink& sink) {
  std::vector<std::string> names;
  for (const SelectItem& item : select.items) names.push_back(item.name);
  sink.columns(names);
  std::int64_t left = select.limit.value_or(INT64_MAX), skip = select.offset;
  std::vector<Value> row(select.items.size());
  for (const std::uint32_t group : ordered(select, groups)) {
    if (skip-- > 0) continue;
    if (left-- <= 0) return;
    for (std::size_t i = 0; i < row.size(); i++) row[i] = groups.cell(select, group, i);
    if (!sink.row(row)) return;
  }
}

}  // namespace

Result<bool> run_aggregate(const Run& run, std::string_view sql, const Limits& limits, RowSink& sink) {
  const auto select = parse_simple_select(sql);
  if (!select) return false;
  const Deadline deadline(limits.seconds);
  TableReaders readers(*select->table->spec, run);
  std::vector<Predicate> where = select->where;
  where.insert(where.begin(), select->table->only.begin(), select->table->only.end());
  Groups groups{GroupKeys(readers, select->group), {}};
  for (const SelectItem& item : select->items) {
    groups.accumulators.emplace_back(item, tables::value_type(readers.spec().columns[item.column]));
  }
  Scan scan(readers, std::move(where));
  std::vector<std::uint32_t> block;
  while (scan.next()) {
    if (deadline.passed()) return fail(out_of_time(limits));
    groups.keys.groups_of(scan, block);
    for (std::size_t i = 0; i < select->items.size(); i++) {
      if (select->items[i].aggregate == Aggregate::none) continue;
      if (!groups.accumulators[i].add(readers, scan, block, groups.keys.size())) return false;
    }
  }
  write(*select, groups, sink);
  return true;
}

}  // namespace stepscope::query
