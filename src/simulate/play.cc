#include "simulate/play.h"

#include <algorithm>
#include <limits>
#include <map>

#include "model/windows.h"

namespace stepscope::simulate {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

std::uint32_t node_at(const ReplayGraph& graph, std::uint32_t lane, std::int64_t time_ns) {
  const auto& nodes = graph.lanes[lane].nodes;
  const auto after = std::upper_bound(nodes.begin(), nodes.end(), time_ns, [&](std::int64_t time, std::uint32_t node) {
    return time < graph.start_ns[node];
  });
  return after == nodes.begin() ? kNone : *(after - 1);
}

std::uint32_t first_node(const ReplayGraph& graph, std::uint32_t lane) { return graph.lanes[lane].nodes.front(); }

}  // namespace

Played play(const ReplayGraph& graph, const Costs& costs, Waits waits) {
  Played out;
  out.start_ns.resize(graph.size());
  std::int64_t* const start = out.start_ns.data();
  const std::int64_t* const cost = costs.cost_ns.data();
  for (std::size_t node = 0; node < graph.size(); node++) {
    std::int64_t ready = kNever;
    if (const std::uint32_t before = costs.before[node]; before != kNone) {
      ready = start[before] + cost[before] + costs.gap_ns[node];
    }
    for (std::uint32_t e = graph.edge_begin[node]; e < graph.edge_begin[node + 1]; e++) {
      const Edge& edge = graph.edges[e];
      if (costs.dropped[e] != 0) continue;
      ready = std::max(ready, start[edge.from] + (edge.from_start ? 0 : cost[edge.from]) + edge.lag_ns);
    }
    const std::int64_t wait = costs.wait_ns[node];
    if (ready == kNever) {
      ready = graph.start_ns[node];
    } else {
      ready += waits == Waits::frozen ? wait : std::min<std::int64_t>(wait, 0);
    }
    start[node] = ready;
  }
  return out;
}

Binding binding_of(const ReplayGraph& graph, const Costs& costs, const Played& played, std::uint32_t node) {
  Binding binds;
  std::int64_t latest = kNever;
  if (const std::uint32_t before = costs.before[node]; before != kNone) {
    binds = {before, graph.lanes[graph.lane[node]].device ? WaitEvidence::stream_order : WaitEvidence::program_order,
             false};
    latest = played.start_ns[before] + costs.cost_ns[before] + costs.gap_ns[node];
  }
  for (std::uint32_t e = graph.edge_begin[node]; e < graph.edge_begin[node + 1]; e++) {
    const Edge& edge = graph.edges[e];
    if (costs.dropped[e] != 0) continue;
    const std::int64_t ready =
        played.start_ns[edge.from] + (edge.from_start ? 0 : costs.cost_ns[edge.from]) + edge.lag_ns;
    if (ready <= latest) continue;
    latest = ready;
    binds = {edge.from, edge.why, edge.from_start};
  }
  return binds;
}

std::int64_t moved(const ReplayGraph& graph, const Costs& costs, const Played& played, std::uint32_t lane,
                   std::int64_t time_ns) {
  const std::uint32_t node = node_at(graph, lane, time_ns);
  if (node == kNone) {
    const std::uint32_t first = first_node(graph, lane);
    return played.start_ns[first] - (graph.start_ns[first] - time_ns);
  }
  const std::int64_t recorded = graph.costs.cost_ns[node], cost = costs.cost_ns[node];
  const std::int64_t inside = time_ns - graph.start_ns[node];
  if (inside <= recorded) {
    const double part = recorded > 0 ? static_cast<double>(inside) / static_cast<double>(recorded) : 0;
    return played.start_ns[node] + static_cast<std::int64_t>(part * static_cast<double>(cost));
  }
  const std::int64_t end = played.start_ns[node] + cost;  // behind it, before the next
  const auto& nodes = graph.lanes[lane].nodes;
  const auto next = std::upper_bound(nodes.begin(), nodes.end(), time_ns,
                                     [&](std::int64_t time, std::uint32_t n) { return time < graph.start_ns[n]; });
  if (next == nodes.end()) return end + (inside - recorded);
  return std::max(end, played.start_ns[*next] - (graph.start_ns[*next] - time_ns));
}

namespace {

// Longer than so much of a step is no time between two steps: a recording in parts was written there.
std::int64_t longest_between(const Trace& trace) {
  constexpr std::int64_t kPart = 2;
  std::vector<std::int64_t> times;
  for (const Step& step : trace.steps) {
    if (!step.partial) times.push_back(step.end_ns - step.start_ns);
  }
  if (trace.source.parts.empty() || times.empty()) return std::numeric_limits<std::int64_t>::max();
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle / kPart;
}

// The part of a recording that stands for its steps, as indices of Trace::steps: the most in a row, the last such ones;
// false: no step is whole.
bool whole_steps(const Trace& trace, std::size_t& first, std::size_t& last) {
  const std::int64_t longest_ns = longest_between(trace);
  std::size_t begin = 0, most = 0, whole = 0;
  for (std::size_t i = 0; i < trace.steps.size(); i++) {
    if (trace.steps[i].partial) continue;
    const bool follows = whole > 0 && trace.steps[i].start_ns - trace.steps[i - 1].end_ns <= longest_ns;
    if (!follows) begin = i, whole = 0;
    whole++;
    if (whole >= most) first = begin, last = i, most = whole;
  }
  return most > 0;
}

std::vector<std::uint32_t> last_device_nodes(const Trace& trace, const std::vector<std::uint32_t>& node_of_row,
                                             const ReplayGraph& graph, std::size_t first, std::size_t last,
                                             bool steps) {
  std::map<std::uint32_t, std::uint32_t> by_lane;
  for (std::size_t row = 0; row < node_of_row.size(); row++) {
    const std::uint32_t node = node_of_row[row];
    if (node == kNone) continue;
    const auto step = static_cast<std::size_t>(trace.device.step[row]);
    if (steps && (trace.device.step[row] == StepId::none || step < first || step > last)) continue;
    const auto [at, added] = by_lane.emplace(graph.lane[node], node);
    if (!added) at->second = std::max(at->second, node);
  }
  std::vector<std::uint32_t> nodes;
  for (const auto& [lane, node] : by_lane) nodes.push_back(node);
  return nodes;
}

// Of every thread of the rank: what it communicated last in the steps.
std::vector<std::uint32_t> last_to_communicate(const ReplayGraph& graph, const StepWindow& window) {
  std::vector<std::uint32_t> nodes;
  for (const Lane& lane : graph.lanes) {
    if (lane.trace != window.trace || lane.device) continue;
    const auto last = std::find_if(lane.nodes.rbegin(), lane.nodes.rend(), [&](std::uint32_t node) {
      return graph.role[node] == NodeRole::communicate && graph.end_ns(node) <= window.end_ns;
    });
    if (last != lane.nodes.rend() && graph.start_ns[*last] >= window.start_ns) nodes.push_back(*last);
  }
  return nodes;
}

}  // namespace

std::vector<StepWindow> step_windows(const Run& run, const ReplayGraph& graph) {
  std::vector<StepWindow> windows;
  for (std::uint32_t t = 0; t < timelines(run).size(); t++) {
    const Trace& trace = run.traces[t];
    StepWindow window{.trace = t};
    std::size_t first = 0, last = 0;
    window.whole_steps = whole_steps(trace, first, last);
    TrackId track = graph.main_track[t];
    if (window.whole_steps && trace.steps[first].track != TrackId::none) track = trace.steps[first].track;
    for (std::uint32_t lane = 0; lane < graph.lanes.size(); lane++) {
      const Lane& one = graph.lanes[lane];
      if (one.trace == t && one.track == track && !one.nodes.empty()) window.lane = lane;
    }
    window.device = last_device_nodes(trace, graph.device_node[t], graph, first, last, window.whole_steps);
    if (window.lane == kNone && window.device.empty()) continue;
    if (window.whole_steps && window.lane != kNone) {
      window.start_ns = run_time_ns(trace, trace.steps[first].start_ns);
      window.end_ns = run_time_ns(trace, trace.steps[last].end_ns);
      window.steps = static_cast<std::int64_t>(last - first + 1);
    } else {
      window.whole_steps = false;
      const std::uint32_t lane = window.lane != kNone ? window.lane : graph.lane[window.device.front()];
      window.lane = lane;
      window.start_ns = graph.start_ns[first_node(graph, lane)];
      window.end_ns = graph.end_ns(graph.lanes[lane].nodes.back());
    }
    window.communicate = last_to_communicate(graph, window);
    windows.push_back(std::move(window));
  }
  return windows;
}

StepTime step_time(const ReplayGraph& graph, const Costs& costs, const Played& played, const StepWindow& window,
                   bool overlapped) {
  StepTime time;
  time.start_ns = moved(graph, costs, played, window.lane, window.start_ns);
  time.end_ns = moved(graph, costs, played, window.lane, window.end_ns);
  const auto ends_with = [&](std::uint32_t node) {
    const std::int64_t end = played.start_ns[node] + costs.cost_ns[node];
    if (end > time.end_ns) time.end_ns = end, time.last = node;
  };
  for (const std::uint32_t node : window.device) ends_with(node);
  for (const std::uint32_t node : window.communicate) {
    if (overlapped) ends_with(node);
  }
  time.step_ns = (time.end_ns - time.start_ns) / window.steps;
  return time;
}

}  // namespace stepscope::simulate
