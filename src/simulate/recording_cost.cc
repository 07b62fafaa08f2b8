#include "simulate/recording_cost.h"

#include <algorithm>
#include <cmath>

#include "base/intervals.h"

namespace stepscope::simulate {
namespace {

// Noting a slice takes about two microseconds with its inputs; what is far more is no note.
constexpr double kMostSliceNs = 12'000;
// Of a piece of work so much is its own in any case.
constexpr double kOwnPart = 0.1;
// Fewer series of steps tell little of what is usual.
constexpr std::size_t kFewestSeries = 3;
constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;

// When any of the job was recorded, as Unix time: windows, and the step with frames.
std::vector<Interval> recorded(const Run& run) {
  std::vector<Interval> out;
  const auto add = [&](const Trace& trace) {
    // A clock that is no Unix time says nothing of when it was.
    if (trace.clock_base_ns < 0 || trace.clock_base_ns > kLatestNs || trace.slices.size() == 0) return;
    Interval all{trace.slices.start_ns[std::size_t{0}], 0};
    for (std::size_t row = 0; row < trace.slices.size(); row++) {
      all.start = std::min(all.start, trace.slices.start_ns[row]);
      all.end = std::max(all.end, trace.slices.end_ns(static_cast<SliceId>(row)));
    }
    out.push_back({all.start + trace.clock_base_ns, all.end + trace.clock_base_ns});
  };
  for (const Trace& trace : run.traces) add(trace);
  for (const Trace& trace : run.stack_steps) add(trace);
  return out;
}

// The mean of a step of the rank where nobody recorded: the median over all series of as many steps as the window has,
// so that what happens every few steps is in it. 0: not known.
std::int64_t usual_step(const Run& run, const StepWindow& window) {
  const std::int64_t rank = run.traces[window.trace].rank.rank;
  const auto history =
      std::find_if(run.history.begin(), run.history.end(), [&](const Trace& one) { return one.rank.rank == rank; });
  if (history == run.history.end()) return 0;
  const std::vector<Interval> busy = recorded(run);
  const auto count = static_cast<std::size_t>(window.steps);
  std::vector<std::int64_t> sums;
  const std::vector<Step>& steps = history->steps;
  std::size_t in_a_row = 0;
  std::int64_t last_number = kAbsent;
  for (std::size_t i = 0; i < steps.size(); i++) {
    // What was recorded is written in the step after.
    const std::int64_t from = steps[i].start_ns - (steps[i].end_ns - steps[i].start_ns);
    const bool is_free = std::none_of(busy.begin(), busy.end(),
                                      [&](Interval one) { return one.start < steps[i].end_ns && one.end > from; });
    const bool follows = last_number == kAbsent || (steps[i].number != kAbsent && steps[i].number - 1 == last_number);
    in_a_row = !is_free ? 0 : follows ? in_a_row + 1 : 1;
    last_number = steps[i].number;
    if (in_a_row < count) continue;
    std::int64_t sum = 0;
    for (std::size_t k = i + 1 - count; k <= i; k++) sum += steps[k].end_ns - steps[k].start_ns;
    sums.push_back(sum);
  }
  // The first steps warm up.
  sums.erase(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(sums.size() / 5));
  if (sums.size() < kFewestSeries) return 0;
  std::nth_element(sums.begin(), sums.begin() + static_cast<std::ptrdiff_t>(sums.size() / 2), sums.end());
  return sums[sums.size() / 2] / window.steps;
}

// Begins and ends of slices beside each piece of a host thread: they are noted there, in what is around the slice.
std::vector<std::uint32_t> notes_beside(const Run& run, const ReplayGraph& graph, const StepWindow& window) {
  std::vector<std::uint32_t> notes(graph.size(), 0);
  for (const Lane& lane : graph.lanes) {
    if (lane.trace != window.trace || lane.device) continue;
    const Trace& trace = run.traces[lane.trace];
    const auto depth = [&](std::uint32_t node) {
      const SliceId slice = graph.slice[node];
      return slice == SliceId::none ? 0 : trace.slices.depth[slice] + 1;
    };
    for (std::size_t i = 0; i + 1 < lane.nodes.size(); i++) {
      const std::uint32_t here = lane.nodes[i], next = lane.nodes[i + 1];
      if (graph.slice[here] == graph.slice[next] || graph.end_ns(here) != graph.start_ns[next]) continue;
      const int deeper = depth(next) - depth(here);
      if (deeper >= 0) notes[here] += static_cast<std::uint32_t>(std::max(deeper, 1));
      if (deeper <= 0) notes[next] += static_cast<std::uint32_t>(std::max(-deeper, 1));
    }
  }
  return notes;
}

}  // namespace

RecordingCost recording_cost(const Run& run, const ReplayGraph& graph, const StepWindow& window) {
  RecordingCost out;
  if (!window.whole_steps || window.lane == kNone) return out;
  out.step_ns = usual_step(run, window);
  const std::int64_t recorded_ns = window.end_ns - window.start_ns;
  const std::int64_t excess_ns = recorded_ns - out.step_ns * window.steps;
  if (out.step_ns == 0 || excess_ns <= 0) return out;
  const std::vector<std::uint32_t> notes = notes_beside(run, graph, window);
  const auto part_of = [&](std::uint32_t node, double slice_ns) {
    const auto most = (1 - kOwnPart) * static_cast<double>(graph.costs.cost_ns[node]);
    return static_cast<std::int64_t>(std::min(most, notes[node] * slice_ns / 2));
  };
  const auto total = [&](double slice_ns) {
    std::int64_t sum = 0;
    for (const std::uint32_t node : graph.lanes[window.lane].nodes) {
      if (graph.start_ns[node] >= window.start_ns && graph.start_ns[node] < window.end_ns) {
        sum += part_of(node, slice_ns);
      }
    }
    return sum;
  };
  double low = 0, high = kMostSliceNs;
  for (int i = 0; i < 30; i++) {
    const double middle = (low + high) / 2;
    (total(middle) < excess_ns ? low : high) = middle;
  }
  out.slice_ns = low;
  out.node_ns.resize(graph.size());
  for (std::uint32_t node = 0; node < graph.size(); node++) out.node_ns[node] = part_of(node, low);
  return out;
}

}  // namespace stepscope::simulate
