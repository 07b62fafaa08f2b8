#include "model/closures.h"

#include <algorithm>
#include <optional>

namespace stepscope {
namespace {

struct OptimizerStep {
  SliceId optimizer = SliceId::none;
  std::optional<std::int64_t> end_ns = {};  // of the first backward pass in it
  bool has_forward = false;                 // before that
  bool marked = false;
};

}  // namespace

std::vector<Closure> closures(const Trace& trace, const std::function<Phase(SliceId)>& phase) {
  const Slices& slices = trace.slices;
  std::vector<OptimizerStep> steps;  // in the order of by_track
  for (const SliceId id : trace.by_track.span()) {
    if (trace.kind(id) > SliceKind::user_annotation || !trace.name(id).starts_with("Optimizer.step#")) continue;
    steps.push_back({.optimizer = id});
  }
  if (steps.empty()) return {};
  std::vector<OptimizerStep*> by_start;
  for (OptimizerStep& step : steps) by_start.push_back(&step);
  std::stable_sort(by_start.begin(), by_start.end(), [&](const OptimizerStep* a, const OptimizerStep* b) {
    return slices.start_ns[a->optimizer] < slices.start_ns[b->optimizer];
  });
  // Where the thread of the step shows passes as such, the first tells; else their operators do, up to the last.
  for (const SliceId id : trace.by_track.span()) {
    const Phase own = phase(id);
    if (own != Phase::forward && own != Phase::backward) continue;
    const auto after = std::upper_bound(
        by_start.begin(), by_start.end(), slices.start_ns[id],
        [&](std::int64_t time, const OptimizerStep* step) { return time < slices.start_ns[step->optimizer]; });
    if (after == by_start.begin()) continue;
    OptimizerStep& step = **(after - 1);
    const bool same_thread = slices.track[id] == slices.track[step.optimizer];
    const std::int64_t end_ns = slices.end_ns(id);
    if (end_ns > slices.end_ns(step.optimizer) || step.marked) continue;
    if (own == Phase::forward) {
      step.has_forward |= same_thread;
    } else if (same_thread && trace.kind(id) != SliceKind::cpu_op) {
      step.marked = true;
      step.end_ns = end_ns;
    } else {
      step.end_ns = std::max(step.end_ns.value_or(end_ns), end_ns);
    }
  }
  std::vector<Closure> out;
  for (const OptimizerStep& step : steps) {
    if (step.end_ns && step.has_forward) out.push_back({step.optimizer, *step.end_ns});
  }
  return out;
}

}  // namespace stepscope
