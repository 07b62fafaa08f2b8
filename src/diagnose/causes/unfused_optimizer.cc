// An optimizer that updates parameters with an operator for each term: every one of them goes through the tensors
// again, where a fused one goes through them once.
#include <algorithm>
#include <cmath>

#include "diagnose/cause.h"
#include "diagnose/heaviest.h"

namespace stepscope::diagnose::causes {
namespace {

// Fewer operators are no chain that could be fused.
constexpr std::size_t kLeastOperators = 3;
// A call that is shorter is its own cost, which a fused optimizer pays once for all.
constexpr std::int64_t kCallNs = 10'000;

Phase phase_of(const Work& work, std::uint32_t row) {
  if (work.device) return static_cast<Phase>(work.trace->device.phase[row]);
  return static_cast<Phase>(work.trace->slices.phase[work.slice]);
}

bool is_one_of_many(std::string_view name) {
  return name.find("_foreach_") == name.npos && name.find("_fused_") == name.npos && name.starts_with("aten::") &&
         name != "aten::item" && name != "aten::zero_";
}

void find_optimizer(const Case& about, std::vector<Diagnosis>& out) {
  Diagnosis found;
  Heaviest operators;
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (work.operation == SliceId::none || phase_of(work, about.predictor.graph().row[node]) != Phase::optimizer)
      continue;
    const std::string_view name = work.trace->name(work.operation);
    if (name.find("_fused_") != name.npos) return;
    if (!is_one_of_many(name)) continue;
    operators.add(name, work, about.on_path(node));
    found.rewrite.nodes.push_back({.node = node});
  }
  if (operators.items().size() < kLeastOperators || about.share(operators.total_ns()) < kWorthSaying) return;
  // Each operator reads two tensors and writes one. A fused one reads parameter, gradient and state and writes all but
  // the gradient: seven where the state is two tensors, which takes more than four operators, else five.
  // Measured on two threads and one, from 0.4 to 16 million parameters, that share is 0.09 to 0.52 of Adam's time where
  // 0.33 is expected, and 0.16 to 0.73 of SGD's with momentum and decay where 0.56 is: less where the temporaries are
  // new memory in each step, more where all that an operator needs is still in a cache (bench/fused_optimizer.py).
  constexpr double kNewMemory = 0.3, kFromCache = 1.65, kShort = 0.1;
  const double passes = 3 * static_cast<double>(operators.items().size());
  const double left = std::min(1.0, (operators.items().size() > 4 ? 7 : 5) / passes);
  for (simulate::Rewrite::Node& one : found.rewrite.nodes) {
    const std::int64_t cost = about.cost_ns(one.node);
    const bool is_short = about.work(one.node).cost_ns < kCallNs;
    const double least = is_short ? kShort : kNewMemory * left;
    const double most = is_short ? 2 * kShort : std::clamp(kFromCache * left, 2 * kShort, 1.0);
    one.least_ns = std::llround(least * static_cast<double>(cost));
    one.most_ns = std::llround(most * static_cast<double>(cost));
  }
  const Heaviest::Item& most = operators.first();
  Finding& finding = found.finding;
  finding.cause = "host";
  finding.sentence = "The optimizer goes through all parameters once for each of its operators";
  finding.where.phase = "optimizer";
  finding.where.op = most.name;
  about.put_place(most.example, about.code(most.example), finding.where);
  std::uint64_t calls = 0;
  for (const Heaviest::Item& item : operators.items()) calls += item.pieces;
  finding.evidence = {
      {.text = "Of the steps", .value = about.share(operators.total_ns()), .unit = Unit::ratio},
      {.text = "Operators in turn", .value = static_cast<std::int64_t>(operators.items().size()), .unit = Unit::count},
      {.text = "Calls", .value = static_cast<std::int64_t>(calls), .unit = Unit::count}};
  put_doubt(finding, "");
  finding.next =
      "Pass fused=True to the optimizer (Adam, AdamW, SGD and Adagrad have it, on the CPU too), else foreach=True";
  out.push_back(std::move(found));
}

}  // namespace

Cause unfused_optimizer_cause() { return {"unfused_optimizer", "An optimizer of many operators", find_optimizer}; }

}  // namespace stepscope::diagnose::causes
