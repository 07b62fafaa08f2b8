#include "simulate/core_waits.h"

#include <map>

#include "model/settings.h"
#include "simulate/step_pieces.h"

namespace stepscope::simulate {

void take_off_core_waits(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                         std::vector<std::int64_t>& node_ns) {
  if (!window.whole_steps || window.steps < 2) return;
  std::map<std::int64_t, std::int64_t> waits;  // by the number of the step; of two the first counts
  for (const CoreWait& wait : core_waits(run.traces[window.trace])) waits.try_emplace(wait.step, wait.ns);
  if (waits.empty()) return;
  node_ns.resize(graph.size());
  take_off_longer(run, graph, window, waits, [](SliceId) { return true; }, node_ns);
}

}  // namespace stepscope::simulate
