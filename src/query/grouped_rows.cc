#include "query/grouped_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "query/group_keys.h"
#include "query/limits.h"

namespace stepscope::query {
namespace {

// The running value of one call in every group.
class Accumulator {
 public:
  Accumulator(AggregateCall call, TableReaders& readers, const std::vector<std::size_t>& group)
      : call_(call), type_(tables::value_type(readers.spec().columns[call.column])) {
    if (call.aggregate != Aggregate::count_distinct) return;
    std::vector<std::size_t> columns = group;
    columns.push_back(call.column);
    pairs_.emplace(readers, std::move(columns));
  }

  // False: a sum no longer fits 64 bits.
  bool add(TableReaders& readers, const Scan& scan, std::span<const std::uint32_t> groups, std::size_t group_count) {
    counts_.resize(group_count);
    if (call_.aggregate == Aggregate::count_rows) {
      for (const std::uint32_t group : groups) counts_[group]++;
      return true;
    }
    if (pairs_) return add_pairs(scan, groups), true;
    const tables::ColumnReader& reader = readers.column(scan.trace(), call_.column);
    if (type_ == ValueType::text) return add_texts(reader, scan, groups), true;
    if (type_ == ValueType::real) return add_reals(reader, scan, groups), true;
    return add_wholes(reader, scan, groups);
  }

  Value value(std::uint32_t group) const {
    const bool seen = group < counts_.size() && counts_[group] > 0;
    switch (call_.aggregate) {
      case Aggregate::count_rows:
      case Aggregate::count_distinct:
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
  bool better(bool less, bool more) const { return call_.aggregate == Aggregate::min ? less : more; }

  // Counts a value where it is first seen in its group.
  void add_pairs(const Scan& scan, std::span<const std::uint32_t> groups) {
    pairs_->groups_of(scan, block_pairs_);
    for (std::size_t i = 0; i < groups.size(); i++) {
      const std::uint32_t pair = block_pairs_[i];
      if (pair >= pair_counted_.size()) pair_counted_.resize(pairs_->size());
      if (pair_counted_[pair]) continue;
      pair_counted_[pair] = true;
      if (!pairs_->is_null(pair)) counts_[groups[i]]++;
    }
  }

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
      if (call_.aggregate == Aggregate::count) continue;
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
      if (call_.aggregate == Aggregate::min || call_.aggregate == Aggregate::max) {
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
      switch (call_.aggregate) {
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

  AggregateCall call_;
  ValueType type_;
  std::vector<std::int64_t> counts_, wholes_;  // by group
  std::vector<double> reals_;
  std::vector<std::string_view> texts_;  // of the run
  std::vector<std::uint32_t> codes_;     // of the block
  std::vector<std::int64_t> block_wholes_;
  std::vector<double> block_reals_;
  std::optional<GroupKeys> pairs_;  // count_distinct: of the group's columns and its own
  std::vector<std::uint32_t> block_pairs_;
  std::vector<bool> pair_counted_;
};

// SQLite's order: null, then numbers, then texts byte by byte.
bool less(const Value& a, const Value& b) {
  const auto rank = [](const Value& v) {
    return std::holds_alternative<std::monostate>(v) ? 0 : std::holds_alternative<std::string>(v) ? 2 : 1;
  };
  return rank(a) != rank(b) ? rank(a) < rank(b) : a < b;  // of one type, because a column has one
}

class GroupedRows : public ValueRows {
 public:
  GroupedRows(const GroupedSelect& select, const Run& run)
      : select_(select), readers_(*select.table->spec, run), keys_(readers_, select.group) {
    for (const AggregateCall& call : select.calls) calls_.emplace_back(call, readers_, select.group);
  }

  // False: a sum no longer fits. An Error: out of time.
  Result<bool> compute(const Deadline& deadline, const Limits& limits) {
    std::vector<Predicate> where = select_.where;
    where.insert(where.begin(), select_.table->only.begin(), select_.table->only.end());
    Scan scan(readers_, std::move(where));
    std::vector<std::uint32_t> block;
    while (scan.next()) {
      if (deadline.passed()) return fail(out_of_time(limits));
      keys_.groups_of(scan, block);
      for (Accumulator& call : calls_) {
        if (!call.add(readers_, scan, block, keys_.size())) return false;
      }
    }
    sort();
    return true;
  }

  std::size_t size() const override { return order_.size(); }
  Value cell(std::size_t row, std::size_t column) const override {
    const std::uint32_t group = order_[row];
    const std::size_t keys = select_.group.size();
    return column < keys ? keys_.value(group, column) : calls_[column - keys].value(group);
  }

 private:
  // By key, which is how SQLite's own groups come out.
  void sort() {
    order_.resize(keys_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    for (std::size_t i = select_.group.size(); i-- > 0;) {
      std::vector<Value> values;
      values.reserve(order_.size());
      for (std::uint32_t group = 0; group < order_.size(); group++) values.push_back(keys_.value(group, i));
      std::stable_sort(order_.begin(), order_.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return less(values[a], values[b]); });
    }
  }

  const GroupedSelect select_;
  TableReaders readers_;
  GroupKeys keys_;
  std::vector<Accumulator> calls_;
  std::vector<std::uint32_t> order_;
};

}  // namespace

Result<std::shared_ptr<const ValueRows>> grouped_rows(const GroupedSelect& select, const Run& run,
                                                      const Deadline& deadline, const Limits& limits) {
  auto rows = std::make_shared<GroupedRows>(select, run);
  const Result<bool> fits = rows->compute(deadline, limits);
  if (!fits) return fail(fits.error());
  return *fits ? std::shared_ptr<const ValueRows>(std::move(rows)) : nullptr;
}

std::string grouped_declaration(const GroupedSelect& select) {
  TableDescription table;
  for (std::size_t i = 0; i < select.group.size(); i++) {
    const ValueType type = tables::value_type(select.table->spec->columns[select.group[i]]);
    table.columns.push_back({group_column(i), type, Unit::none, ""});
  }
  std::string text = declaration(table);
  text.pop_back();
  // Without a type: a call has no affinity, as its value has none in the statement.
  for (std::size_t i = 0; i < select.calls.size(); i++) {
    text += (select.group.empty() && i == 0 ? "\"" : ", \"") + call_column(i) + "\"";
  }
  return text + ")";
}

}  // namespace stepscope::query
