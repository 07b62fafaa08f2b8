#include "simulate/core_waits.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/settings.h"
#include "simulate/step_pieces.h"

namespace stepscope::simulate {
namespace {

// Of the longest nodes, no more than `ns`.
void take_off(std::vector<std::uint32_t> nodes, std::int64_t ns, const ReplayGraph& graph,
              std::vector<std::int64_t>& node_ns) {
  const auto left = [&](std::uint32_t node) { return graph.costs.cost_ns[node] - node_ns[node]; };
  std::sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) { return left(a) > left(b); });
  for (const std::uint32_t node : nodes) {
    const std::int64_t taken = std::clamp<std::int64_t>(ns, 0, left(node));
    node_ns[node] += taken;
    ns -= taken;
  }
}

}  // namespace

void take_off_core_waits(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                         std::vector<std::int64_t>& node_ns) {
  const Trace& trace = run.traces[window.trace];
  const std::vector<CoreWait> waits = core_waits(trace);
  if (!window.whole_steps || window.steps < 2 || waits.empty()) return;
  node_ns.resize(graph.size());
  const std::vector<StepPieces> pieces = step_pieces(run, graph, window, node_ns);
  struct Longer {
    std::int64_t ns = 0;
    const StepPiece* piece = nullptr;
  };
  std::map<std::int64_t, std::vector<Longer>> longer;  // by the number of the step: than the same piece in others
  for (const StepPieces& steps : pieces) {
    std::vector<std::int64_t> each;
    for (const auto& [step, here] : steps) each.push_back(here.ns);
    each.resize(std::max(each.size(), static_cast<std::size_t>(window.steps)));  // 0 where a step has none
    // Waits only ever add.
    const auto middle = each.begin() + static_cast<std::ptrdiff_t>((each.size() - 1) / 2);
    std::nth_element(each.begin(), middle, each.end());
    for (const auto& [step, here] : steps) {
      const std::int64_t more = here.ns - *middle;
      if (more > 0) longer[trace.steps[step].number].push_back({more, &here});
    }
  }
  for (const CoreWait& wait : waits) {
    std::vector<Longer>& own = longer[wait.step];
    std::sort(own.begin(), own.end(), [](const Longer& a, const Longer& b) { return a.ns > b.ns; });
    std::int64_t left_ns = wait.ns;
    for (const Longer& one : own) {
      const std::int64_t taken = std::min(left_ns, one.ns);
      take_off(one.piece->nodes, taken, graph, node_ns);
      left_ns -= taken;
    }
    own.clear();
  }
}

}  // namespace stepscope::simulate
