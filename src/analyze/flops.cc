// flops: how much arithmetic the program did, where, and how much of the time that figure covers.
//
// Counted are the products that ran, forward and backward, from the sizes that the profiler recorded with operators
// (record_shapes); see costs/formulas.h. One multiply-add is two FLOP. Under a causal mask half of attention is hidden:
// figures named causal leave it out, the others count the whole square. What has no formula or no sizes is never 0 but
// stands beside every figure as a share of the time.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>

#include "analyze/analysis.h"
#include "analyze/flops/module_tree.h"
#include "analyze/flops/steps.h"
#include "base/name_verdicts.h"

namespace stepscope::analyze {
namespace {

using namespace costs;
using namespace flops;

constexpr std::string_view kTooMany =
    "More than 9 EFLOP, which is more than is added up here: see by_part of each rank";
constexpr std::string_view kNotCounted =
    "No product could be counted: none of the operators that have a formula were recorded with their sizes. Record "
    "with record_shapes=True.";

// ---- by part, operator, type ----

struct Line {
  std::int64_t flop = 0, masked = 0, time_ns = 0;
  std::uint64_t calls = 0;

  void add(const Product& product, std::int64_t ns) {
    flop = add_up(flop, product.flop);
    masked = add_up(masked, product.masked);
    time_ns += ns;
    calls++;
  }
};

std::vector<TableColumn> line_columns(std::vector<TableColumn> lead) {
  lead.insert(lead.begin(), {"rank", ValueType::integer, Unit::none, "Rank"});
  lead.insert(lead.end(),
              {{"calls", ValueType::integer, Unit::count, "Products counted"},
               {"flop", ValueType::integer, Unit::flop, "Two for each multiply-add; attention over the whole square"},
               {"causal_flop", ValueType::integer, Unit::flop,
                "The same with half of attention that has a causal mask; unknown: not recorded whether it has one"},
               {"share", ValueType::real, Unit::ratio, "Share of the counted FLOP of the rank"},
               {"time_ns", ValueType::integer, Unit::ns,
                "Summed time of the kernels of these products; on a CPU, of the operators"},
               {"flop_per_s", ValueType::real, Unit::flop_per_s, "FLOP over this time"}});
  return lead;
}

void add_line(Table& table, const RankCosts& rank, std::vector<Value> lead, const Line& line) {
  lead.insert(lead.begin(), rank.rank());
  lead.insert(lead.end(), {count(line.calls), line.flop, rank.causal(line.flop - line.masked),
                           share(line.flop, rank.sum.all()), line.time_ns, per_second(line.flop, line.time_ns)});
  table.rows.push_back(std::move(lead));
}

// One row for each key, most FLOP first; `key_of` gives the cells after the rank, as texts.
template <std::size_t N, class KeyOf>
Table grouped(std::string name, std::vector<TableColumn> lead, const std::vector<RankCosts>& ranks,
              const KeyOf& key_of) {
  Table table{.name = std::move(name), .columns = line_columns(std::move(lead))};
  for (const RankCosts& rank : ranks) {
    std::map<std::array<std::string_view, N>, Line> lines;
    for (std::size_t i = 0; i < rank.products.all.size(); i++) {
      lines[key_of(rank, i)].add(rank.products.all[i], rank.time.product_ns[i]);
    }
    std::vector<const std::pair<const std::array<std::string_view, N>, Line>*> order;
    for (const auto& line : lines) order.push_back(&line);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->second.flop > b->second.flop; });
    for (const auto* line : order) {
      std::vector<Value> cells;
      for (const std::string_view cell : line->first) cells.push_back(text(cell));
      add_line(table, rank, std::move(cells), line->second);
    }
  }
  return table;
}

const TableColumn kPartColumn{"part", ValueType::text, Unit::none,
                              "forward; backward; recompute: forward that ran again in backward, for checkpointing"};
const TableColumn kTypeColumn{"dtype", ValueType::text, Unit::none,
                              "Element type of the first operand; unknown: not recorded"};

Table by_op(const std::vector<RankCosts>& ranks) {
  return grouped<3>(
      "by_op",
      {{"op", ValueType::text, Unit::none, "Operator; what it calls counts as part of it"}, kPartColumn, kTypeColumn},
      ranks, [](const RankCosts& rank, std::size_t product) {
        const Product& of = rank.products.all[product];
        return std::array{of.op, to_string(of.part), rank.types[product]};
      });
}

Table by_part(const std::vector<RankCosts>& ranks) {
  return grouped<1>("by_part", {kPartColumn}, ranks, [](const RankCosts& rank, std::size_t product) {
    return std::array{to_string(rank.products.all[product].part)};
  });
}

Table by_dtype(const std::vector<RankCosts>& ranks) {
  return grouped<1>("by_dtype", {kTypeColumn}, ranks,
                    [](const RankCosts& rank, std::size_t product) { return std::array{rank.types[product]}; });
}

// ---- by module ----

// What matters most stands in front: a narrow terminal leaves out the rest.
std::vector<TableColumn> module_columns() {
  return {{"rank", ValueType::integer, Unit::none, "Rank"},
          {"module", ValueType::text, Unit::none, "Path of the module; unknown: in no module"},
          {"class", ValueType::text, Unit::none, "Its class; unknown: not recorded, or nobody calls it"},
          {"calls", ValueType::integer, Unit::count, "Calls of the module"},
          {"forward_ns", ValueType::integer, Unit::ns,
           "Summed time of its calls in forward: from the start of the first device work launched within a call to the "
           "end of the last; on the host where there is none; unknown: no call in forward"},
          {"forward_flop", ValueType::integer, Unit::flop, "Itself and all modules below it, forward"},
          {"backward_flop", ValueType::integer, Unit::flop, "The same, backward: by the forward operator"},
          {"share", ValueType::real, Unit::ratio, "Share of the counted FLOP of the rank"},
          {"parameters", ValueType::integer, Unit::count,
           "Of itself and all modules below it; one that several share counts where it stands first; unknown: not "
           "recorded, as stepscope run does"},
          {"forward_macs", ValueType::integer, Unit::count, "Multiply-adds in forward: half of forward_flop"},
          {"recompute_flop", ValueType::integer, Unit::flop, "Forward that ran again in backward"},
          {"causal_flop", ValueType::integer, Unit::flop,
           "Forward, backward and recompute with half of attention that has a causal mask"},
          {"own_flop", ValueType::integer, Unit::flop, "Of the three, in none of the modules below it"},
          {"depth", ValueType::integer, Unit::none, "Modules around it"},
          {"parent", ValueType::text, Unit::none, "Path of the innermost of them"}};
}

std::vector<Value> module_row(const RankCosts& rank, const ModuleTree& tree, const ModuleNode& node) {
  const ModulePaths::Node& place = node.place;
  const FlopSum& total = node.total;
  const bool top = place.parent == ModulePaths::none;
  return {rank.rank(),
          text(place.path),
          text(rank.trace->strings[place.type]),
          value_if(!place.path.empty(), static_cast<std::int64_t>(node.calls)),
          to_value(node.forward_ns),
          total.of(Part::forward),
          total.of(Part::backward),
          share(total.all(), rank.sum.all()),
          to_value(node.parameters),
          total.of(Part::forward) / 2,
          total.of(Part::recompute),
          rank.causal(total.causal()),
          node.own.all(),
          value_if(!place.path.empty(), std::int64_t{place.depth}),
          top ? Value() : text(tree.nodes[place.parent].place.path)};
}

Table by_module(const std::vector<RankCosts>& ranks) {
  Table table{.name = "by_module", .columns = module_columns()};
  for (const RankCosts& rank : ranks) {
    const ModuleTree tree = module_tree(*rank.trace, rank.products);
    std::vector<const ModuleNode*> order;
    for (const ModuleNode& node : tree.nodes) order.push_back(&node);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->total.all() > b->total.all(); });
    for (const ModuleNode* node : order) table.rows.push_back(module_row(rank, tree, *node));
    if (tree.outside.calls > 0 && !tree.nodes.empty())
      table.rows.push_back(module_row(rank, tree, {.own = tree.outside, .total = tree.outside}));
  }
  return table;
}

// ---- what is not counted ----

std::string_view why(Known known) {
  switch (known) {
    case Known::no_formula: return "no formula";
    case Known::no_shapes: return "no sizes";
    default: return "no operator";
  }
}

Table uncounted_table(const std::vector<RankCosts>& ranks) {
  Table table{
      .name = "uncounted",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"name", ValueType::text, Unit::none, "Operator; the kernel where no operator is known"},
                  {"why", ValueType::text, Unit::none,
                   "no formula: works element by element, or is not known here; no sizes: what its formula needs was "
                   "not recorded; no operator: nobody knows who launched it"},
                  {"calls", ValueType::integer, Unit::count, "Kernels; on a CPU, calls of the operator"},
                  {"time_ns", ValueType::integer, Unit::ns, "Summed time of kernels; on a CPU, self time"},
                  {"share", ValueType::real, Unit::ratio, "Share of the time that the shares are of"}}};
  for (const RankCosts& rank : ranks) {
    for (const Uncounted& row : rank.time.uncounted) {
      table.rows.push_back({rank.rank(), text(rank.trace->strings[row.name]), text(why(row.why)), count(row.calls),
                            row.time_ns, share(row.time_ns, rank.time.all())});
    }
  }
  return table;
}

void add_shares(Answer& answer, const std::vector<RankCosts>& ranks) {
  std::int64_t all = 0;
  for (const RankCosts& rank : ranks) all += rank.time.all();
  const auto add = [&](std::string_view name, Known known, std::string_view meaning) {
    std::int64_t part = 0;
    for (const RankCosts& rank : ranks) part += rank.time.of(known);
    add_scalar(answer, name, share(part, all), Unit::ratio,
               all > 0 ? meaning : "No time of kernels or operators was recorded");
  };
  add("counted_share", Known::counted,
      "Share of the time in which counted products ran: summed time of kernels that compute; on a CPU, self time of "
      "operators");
  add("no_formula_share", Known::no_formula,
      "The same for operators without a formula: those that work element by element, and those not known here");
  add("no_sizes_share", Known::no_shapes, "The same for operators whose formula needs what was not recorded");
  add("no_operator_share", Known::nothing, "The same for kernels that no recorded operator launched");
}

// ---- totals ----

struct Totals {
  FlopSum sum;
  std::array<std::uint64_t, kParts> without_sizes{};
  bool masks_known = true;
};

Totals totals_of(const std::vector<RankCosts>& ranks) {
  Totals out;
  for (const RankCosts& rank : ranks) {
    for (const Product& product : rank.products.all) out.sum.add(product);
    for (const auto& call : rank.products.without_shapes) out.without_sizes[static_cast<std::size_t>(call.part)]++;
    out.masks_known = out.masks_known && rank.products.masks_known;
  }
  return out;
}

void add_totals(Answer& answer, const Totals& totals) {
  const bool any = totals.sum.calls > 0;
  const auto add = [&](std::string_view name, bool known, std::int64_t flop, std::string_view meaning,
                       std::string_view reason) {
    const bool fits = flop < std::numeric_limits<std::int64_t>::max();  // where add_up() stops
    add_scalar(answer, name, value_if(any && known && fits, flop), Unit::flop,
               !any    ? kNotCounted
               : !fits ? kTooMany
               : known ? meaning
                       : reason);
  };
  const auto part = [&](std::string_view name, Part which, std::string_view meaning) {
    const auto at = static_cast<std::size_t>(which);
    const bool known = totals.sum.by_part[at] > 0 || totals.without_sizes[at] == 0;
    add(name, known, totals.sum.by_part[at], meaning, "None of these operators was recorded with all that it needs");
  };
  part("forward_flop", Part::forward, "Counted in forward, of all ranks; two for each multiply-add");
  part("backward_flop", Part::backward, "Counted in backward, of all ranks; measured, not a factor of forward");
  part("recompute_flop", Part::recompute, "Counted in forward that ran again in backward, for checkpointing");
  add("total_flop", true, totals.sum.all(), "The three together", "");
  const bool fits = totals.sum.all() < std::numeric_limits<std::int64_t>::max();
  add("causal_flop", totals.masks_known, fits ? totals.sum.causal() : totals.sum.all(),
      "The three together with half of attention that has a causal mask",
      "Of some attention it was not recorded whether its mask is causal");
}

void add_notes(Answer& answer, const std::vector<RankCosts>& ranks, const Totals& totals) {
  std::uint64_t missing = 0;
  for (const std::uint64_t calls : totals.without_sizes) missing += calls;
  if (totals.sum.calls == 0) {
    answer.notes.emplace_back(kNotCounted);
  } else if (missing > 0) {
    answer.notes.push_back("Of " + std::to_string(missing) + (missing == 1 ? " call" : " calls") +
                           " of operators with a formula not everything was recorded that it needs: all figures are "
                           "lower bounds.");
  }
  const bool modules = std::any_of(ranks.begin(), ranks.end(), [](const auto& r) { return !r.trace->modules.empty(); });
  if (totals.sum.calls > 0 && !modules) {
    answer.notes.emplace_back(
        "No modules were recorded, so FLOP cannot be given per nn.Module: record under `stepscope run`, or with "
        "with_stack=True.");
  }
}

bool names_something(const FlopRule& rule, const Trace& trace) {
  const auto judge = [&](std::string_view name) -> std::uint8_t { return rule.pattern.fits(name) ? 1 : 0; };
  NameVerdicts<std::uint8_t, decltype(judge)> fits(trace.strings, 2, judge);
  const auto& names = trace.slices.name;
  return std::any_of(names.begin(), names.end(), [&](StringId name) { return fits(name) == 1; });
}

// A formula of the user's is asked where torch's own is not: that it gives nothing may be its own fault.
void note_silent_rules(Answer& answer, const std::vector<RankCosts>& ranks, const CostTables& tables) {
  std::map<const FlopRule*, std::uint64_t> silent;
  for (const RankCosts& rank : ranks) {
    for (const auto& call : rank.products.without_shapes) {
      if (const FlopRule* rule = tables.own.match(rank.trace->name(call.slice))) silent[rule]++;
    }
  }
  for (const FlopRule& rule : tables.own.all()) {
    const auto found = silent.find(&rule);
    if (found == silent.end()) continue;
    answer.notes.push_back("Rule " + rule.name + " of --flop-rules gives no number for " +
                           std::to_string(found->second) + (found->second == 1 ? " call" : " calls") +
                           " of its operators: it asks for what was not recorded with them, says unknown, divides by "
                           "0, or comes to less than 0 or far too much.");
  }
}

void note_idle_rules(Answer& answer, const std::vector<RankCosts>& ranks, const CostTables& tables) {
  for (const FlopRule& rule : tables.own.all()) {
    const auto fits = [&](const RankCosts& rank) { return names_something(rule, *rank.trace); };
    if (std::any_of(ranks.begin(), ranks.end(), fits)) continue;
    answer.notes.push_back("Rule " + rule.name +
                           " of --flop-rules fits no operator here; see the names in table uncounted.");
  }
}

Result<Answer> run_flops(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<RankCosts> ranks;
  const auto tables = cost_tables(run);
  if (!tables) return fail(tables.error());
  for (const Trace& trace : timelines(run)) ranks.emplace_back(trace, *tables);
  const Totals totals = totals_of(ranks);
  add_totals(answer, totals);
  add_shares(answer, ranks);
  answer.tables = {by_part(ranks), by_op(ranks), by_module(ranks), by_dtype(ranks)};
  add_steps(answer, ranks);
  answer.tables.push_back(uncounted_table(ranks));
  for (Table& table : answer.tables) {
    limit_rows(answer, table, options.max_rows,
               table.name == "steps"       ? "later steps"
               : table.name == "uncounted" ? "less time"
                                           : "less FLOP");
  }
  add_notes(answer, ranks, totals);
  note_idle_rules(answer, ranks, *tables);
  note_silent_rules(answer, ranks, *tables);
  return answer;
}

}  // namespace

Analysis flops_analysis() { return {"flops", "How much arithmetic was done, and where?", run_flops}; }

}  // namespace stepscope::analyze
