#include "simulate/unexplained.h"

#include <algorithm>
#include <map>

namespace stepscope::simulate {

std::vector<LaneWaits> unexplained_waits(const ReplayGraph& graph, const std::vector<StepWindow>& windows) {
  std::vector<LaneWaits> out;
  for (const StepWindow& window : windows) {
    std::int64_t end_ns = window.end_ns;
    for (const std::uint32_t node : window.device) end_ns = std::max(end_ns, graph.end_ns(node));
    for (std::uint32_t number = 0; number < graph.lanes.size(); number++) {
      const Lane& lane = graph.lanes[number];
      if (lane.trace != window.trace) continue;
      LaneWaits waits{.lane = number, .window_ns = end_ns - window.start_ns};
      for (const std::uint32_t node : lane.nodes) {
        const std::int64_t start = graph.start_ns[node];
        const std::int64_t began =
            std::max(start - std::max<std::int64_t>(graph.costs.wait_ns[node], 0), window.start_ns);
        if (start > window.start_ns && began < std::min(start, end_ns)) {
          const std::int64_t wait = std::min(start, end_ns) - began;
          waits.unexplained_ns += wait;
          waits.longest_ns = std::max(waits.longest_ns, wait);
        }
        if (start < window.start_ns || start >= end_ns) continue;
        waits.nodes++;
        waits.busy_ns += std::min(graph.end_ns(node), end_ns) - start;
      }
      if (waits.nodes > 0) out.push_back(waits);
    }
  }
  return out;
}

std::optional<double> unexplained_share(const ReplayGraph& graph, const std::vector<LaneWaits>& lanes) {
  std::map<std::uint32_t, double> shares;  // per trace
  for (const LaneWaits& lane : lanes) {
    if (!graph.lanes[lane.lane].waits || lane.window_ns <= 0) continue;
    shares[graph.lanes[lane.lane].trace] +=
        static_cast<double>(lane.unexplained_ns) / static_cast<double>(lane.window_ns);
  }
  if (shares.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [trace, share] : shares) sum += share;
  return sum / static_cast<double>(shares.size());
}

}  // namespace stepscope::simulate
