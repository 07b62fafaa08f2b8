#include "simulate/core_waits.h"

#include <algorithm>

#include "model/settings.h"
#include "simulate/step_pieces.h"

namespace stepscope::simulate {

void take_off_core_waits(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                         std::vector<std::int64_t>& node_ns) {
  if (!window.whole_steps || window.steps < 2) return;
  const Trace& trace = run.traces[window.trace];
  HeldUp held;
  for (const CoreWait& wait : core_waits(trace)) {
    const auto step = std::find_if(trace.steps.begin(), trace.steps.end(), [&](const Step& one) {
      return one.number == wait.step && one.track == graph.lanes[window.lane].track;
    });
    if (step != trace.steps.end())
      held.most_ns.try_emplace(static_cast<std::size_t>(step - trace.steps.begin()), wait.ns);
  }
  if (held.most_ns.empty()) return;
  node_ns.resize(graph.size());
  take_off_longer(run, graph, window, held, node_ns);
}

}  // namespace stepscope::simulate
