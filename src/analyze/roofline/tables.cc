#include "analyze/roofline/tables.h"

#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "model/answer_parts.h"

namespace stepscope::analyze::roofline {
namespace {

using costs::WorkCall;
using Columns = std::vector<TableColumn>;
using Cells = std::vector<Value>;

template <class Cell>
void append(std::vector<Cell>& to, std::vector<Cell> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// `rest` stands behind what matters most, so that a narrow terminal leaves it out before.
Columns columns(Columns lead, Columns rest, std::string_view what) {
  Columns all{{"rank", ValueType::integer, Unit::none, "Rank"}};
  append(all, std::move(lead));
  append(all,
         {{"calls", ValueType::integer, Unit::count, std::string(what)},
          {"time_ns", ValueType::integer, Unit::ns, "Of the kernels, summed; on a CPU of the operators"},
          {"share", ValueType::real, Unit::ratio, "Share of the time of all that computes"},
          {"lost_ns", ValueType::integer, Unit::ns, "Of it, beyond the least that the work of each call takes here"},
          {"attained_share", ValueType::real, Unit::ratio,
           "That least over the time; unknown: no peaks or types, or faster than that"},
          {"limit", ValueType::text, Unit::none,
           "What bounds it: compute; memory; latency: less than 1 µs of work a call; cache: faster than the "
           "memory of the device, so operands came from a cache"}});
  append(all, std::move(rest));
  append(all, {{"flop", ValueType::integer, Unit::flop, "Arithmetic; unknown: not known of all of them"},
               {"bytes", ValueType::integer, Unit::bytes, "Least that is moved: each operand once, and the output"},
               {"flop_per_byte", ValueType::real, Unit::none, "Arithmetic intensity"},
               {"flop_per_s", ValueType::real, Unit::flop_per_s, "FLOP over the time"},
               {"gb_per_s", ValueType::real, Unit::gb_per_s, "Bytes over the time"}});
  return all;
}

void add_row(Table& table, const Rank& rank, Cells lead, Cells rest, const Judged& sum) {
  const auto time = static_cast<double>(sum.time_ns), flop = static_cast<double>(sum.flop),
             bytes = static_cast<double>(sum.bytes);
  const auto known = [&](bool all, double value) { return all && sum.time_ns > 0 ? Value(value) : Value(); };
  Cells row{rank.costs.rank()};
  append(row, std::move(lead));
  append(row,
         {count(sum.calls), sum.time_ns, share(sum.time_ns, rank.work.all_ns()),
          value_if(sum.knows_least, std::llround(sum.lost_ns)),
          known(sum.knows_least && !sum.too_fast(), sum.least_ns / time), text(sum.limit(rank.costs.time.device))});
  append(row, std::move(rest));
  append(row, {value_if(sum.knows_flop, sum.flop), value_if(sum.knows_bytes, sum.bytes),
               known(sum.knows_flop && sum.knows_bytes && sum.bytes > 0, flop / bytes),
               known(sum.knows_flop, flop / time * 1e9), known(sum.knows_bytes, bytes / time)});
  table.rows.push_back(std::move(row));
}

// Most time lost first; behind it what nothing can be said of, by time.
template <class Key>
std::vector<const std::pair<const Key, Judged>*> in_order(const std::map<Key, Judged>& sums) {
  std::vector<const std::pair<const Key, Judged>*> order;
  for (const auto& sum : sums) order.push_back(&sum);
  const auto weight = [](const Judged& sum) {
    return std::tuple(sum.knows_least, sum.knows_least ? sum.lost_ns : 0, sum.time_ns);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return weight(a->second) > weight(b->second); });
  return order;
}

std::string label(const WorkCall& call) { return std::string(call.op) + (call.backward_of_op ? " (backward)" : ""); }

std::string_view why(costs::NotKnown not_known) {
  switch (not_known) {
    case costs::NotKnown::no_sizes: return "no sizes";
    case costs::NotKnown::no_model: return "no model";
    default: return "no operator";
  }
}

}  // namespace

Table families_table(const std::vector<Rank>& ranks) {
  Table table{.name = "families",
              .columns = columns({{"family", ValueType::text, Unit::none, "Kind of work"}}, {}, "Calls of operators")};
  for (const Rank& rank : ranks) {
    std::map<costs::Family, Judged> sums;
    for (std::size_t i = 0; i < rank.work.all.size(); i++) sums[rank.work.all[i].family].add(rank.judged[i]);
    for (const auto* one : in_order(sums)) add_row(table, rank, {text(to_string(one->first))}, {}, one->second);
  }
  return table;
}

Table ops_table(const std::vector<Rank>& ranks) {
  Table table{.name = "ops",
              .columns = columns({{"op", ValueType::text, Unit::none, "Operator; what it calls is part of it"},
                                  {"sizes", ValueType::text, Unit::none, "Sizes of its inputs, as recorded"},
                                  {"dtype", ValueType::text, Unit::none, "Element type whose peak counts"}},
                                 {{"family", ValueType::text, Unit::none, "Kind of work"}}, "Calls with these sizes")};
  using Key = std::tuple<std::string, StringId, std::string_view, costs::Family>;
  for (const Rank& rank : ranks) {
    std::map<Key, Judged> sums;
    const Trace& trace = *rank.costs.trace;
    for (std::size_t i = 0; i < rank.work.all.size(); i++) {
      const WorkCall& call = rank.work.all[i];
      const StringId sizes = call.row == WorkCall::none ? StringId::none : trace.ops.input_dims[call.row];
      sums[Key{label(call), sizes, call.type, call.family}].add(rank.judged[i]);
    }
    for (const auto* one : in_order(sums)) {
      const auto& [op, sizes, type, family] = one->first;
      add_row(table, rank, {text(op), text(trace.strings[sizes]), text(type)}, {text(to_string(family))}, one->second);
    }
  }
  return table;
}

// The work of a call counts for the longest of its kernels; the others, which prepare or add up, have none.
Table kernels_table(const std::vector<Rank>& ranks) {
  Table table{.name = "kernels",
              .columns = columns({{"kernel", ValueType::text, Unit::none, "Kernel"}},
                                 {{"op", ValueType::text, Unit::none, "Operator that launched it"},
                                  {"helper", ValueType::boolean, Unit::none,
                                   "Is another kernel of the same call longer? The work counts for that one"}},
                                 "Kernels")};
  using Key = std::tuple<StringId, std::string, bool>;
  const WorkCall kNothing;
  for (const Rank& rank : ranks) {
    std::map<Key, Judged> sums;
    const Trace& trace = *rank.costs.trace;
    for (std::uint32_t row = 0; row < rank.work.call_of_kernel.size(); row++) {
      const std::uint32_t at = rank.work.call_of_kernel[row];
      if (at == WorkCall::none) continue;
      const WorkCall& call = rank.work.all[at];
      const bool helper = call.kernel != row;
      const SliceId slice = trace.device.slice[row];
      sums[Key{trace.slices.name[slice], label(call), helper}].add(
          judge(helper ? kNothing : call, trace.slices.dur_ns[slice], rank.peaks()));
    }
    for (const auto* one : in_order(sums)) {
      const auto& [kernel, op, helper] = one->first;
      add_row(table, rank, {text(trace.strings[kernel])}, {text(op), helper}, one->second);
    }
  }
  return table;
}

Table unmodelled_table(const std::vector<Rank>& ranks) {
  Table table{.name = "unmodelled",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"name", ValueType::text, Unit::none, "Operator; the kernel where no operator is known"},
                          {"why", ValueType::text, Unit::none,
                           "no sizes: sizes or types of its inputs were not recorded, or do not tell; no model: nobody "
                           "wrote down what it moves; no operator: nobody knows who launched it"},
                          {"calls", ValueType::integer, Unit::count, "Kernels; on a CPU, calls of the operator"},
                          {"time_ns", ValueType::integer, Unit::ns, "Summed time of kernels; on a CPU, self time"},
                          {"share", ValueType::real, Unit::ratio, "Share of the time of all that computes"}}};
  for (const Rank& rank : ranks) {
    for (const costs::Unmodelled& row : rank.work.unmodelled) {
      table.rows.push_back({rank.costs.rank(), text(rank.costs.trace->strings[row.name]), text(why(row.why)),
                            count(row.calls), row.time_ns, share(row.time_ns, rank.work.all_ns())});
    }
  }
  return table;
}

Table devices_table(const std::vector<Rank>& ranks) {
  Table table{
      .name = "devices",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::text, Unit::none, "Device as recorded"},
                  {"peak_gb_per_s", ValueType::real, Unit::gb_per_s, "Bandwidth of its memory; unknown: of no table"},
                  {"source", ValueType::text, Unit::none, "Where its peaks come from"}}};
  for (const Rank& rank : ranks) {
    const costs::DevicePeaks* peaks = rank.peaks();
    table.rows.push_back({rank.costs.rank(), text(rank.costs.peaks.device),
                          peaks == nullptr ? Value() : Value(peaks->gb_per_s),
                          peaks == nullptr ? Value() : text(peaks->source)});
  }
  return table;
}

}  // namespace stepscope::analyze::roofline
