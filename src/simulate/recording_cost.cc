#include "simulate/recording_cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "base/intervals.h"
#include "model/answer_parts.h"
#include "model/lookup.h"
#include "model/module_paths.h"
#include "model/settings.h"
#include "model/telemetry.h"
#include "model/windows.h"
#include "simulate/core_waits.h"
#include "simulate/step_lengths.h"
#include "simulate/usual_step.h"

namespace stepscope::simulate {
namespace {

// Noting a slice takes about two microseconds with its inputs; what is far more is no note.
constexpr double kMostSliceNs = 12'000;
// Where a part of a step is known to be longer by more, hooks of its modules and of autograd are what is noted there.
constexpr double kMostSliceOfPartNs = 60'000;
// Of the work; less is chance, more is another job.
constexpr double kTelling = 0.01, kMostMore = 0.7;
// Of a piece of work so much is its own in any case.
constexpr double kOwnPart = 0.1;
// A stream that works so much of a window is what takes its time.
constexpr double kMostOfWindow = 0.6;
// A module's call is noted by hooks in Python, which take as long as so many notes of torch's own: 3.7 us and 0.4 in
// ema_teacher of the gallery, whose forward pass has both and whose backward pass the latter alone.
constexpr double kNotesOfModule = 9;

// Begins and ends of slices beside each piece of a host thread: they are noted there, in what is around the slice.
std::vector<double> notes_beside(const Run& run, const ReplayGraph& graph, const StepWindow& window) {
  std::vector<double> notes(graph.size(), 0);
  for (const Lane& lane : graph.lanes) {
    if (lane.trace != window.trace || lane.device) continue;
    const Trace& trace = run.traces[lane.trace];
    const auto depth = [&](std::uint32_t node) {
      const SliceId slice = graph.slice[node];
      return slice == SliceId::none ? 0 : trace.slices.depth[slice] + 1;
    };
    // What notes the begins, or the ends, of so many ranges takes, in notes of torch's own.
    const auto innermost = [&](std::uint32_t node, int count) {
      double sum = 0;
      SliceId at = graph.slice[node];
      for (; count > 0 && at != SliceId::none; count--, at = trace.slices.parent[at]) {
        sum += is_range_of_hooks(trace, at) ? kNotesOfModule : 1;
      }
      return sum;
    };
    for (std::size_t i = 0; i + 1 < lane.nodes.size(); i++) {
      const std::uint32_t here = lane.nodes[i], next = lane.nodes[i + 1];
      if (graph.slice[here] == graph.slice[next] || graph.end_ns(here) != graph.start_ns[next]) continue;
      const int deeper = depth(next) - depth(here);
      if (deeper >= 0) notes[here] += innermost(next, std::max(deeper, 1));
      if (deeper <= 0) notes[next] += innermost(here, std::max(-deeper, 1));
    }
  }
  return notes;
}

// Of a stream of the rank that works most of the window: how much of it.
double busiest_stream(const ReplayGraph& graph, const StepWindow& window) {
  std::int64_t most_ns = 0;
  for (const Lane& lane : graph.lanes) {
    if (!lane.device || lane.trace != window.trace) continue;
    std::int64_t sum_ns = 0;
    for (const std::uint32_t node : lane.nodes) {
      if (graph.start_ns[node] >= window.start_ns && graph.start_ns[node] < window.end_ns) {
        sum_ns += graph.costs.cost_ns[node];
      }
    }
    most_ns = std::max(most_ns, sum_ns);
  }
  return static_cast<double>(most_ns) / static_cast<double>(std::max<std::int64_t>(window.end_ns - window.start_ns, 1));
}

// What a window has that recording may have made longer, and by how much that is longer than usual.
struct Longer {
  std::vector<std::uint32_t> work;
  double excess_ns = 0;
  bool is_all = false;   // the work is all that takes time there
  bool is_part = false;  // what is noted elsewhere is longer by something else
  double most_slice_ns = kMostSliceNs;
};

// Each note costs the same, as far as what is noted has room for it.
void take_off_notes(const Run& run, const ReplayGraph& graph, const StepWindow& window, const Longer& longer,
                    RecordingCost& out) {
  if (longer.excess_ns <= 0) return;
  const std::vector<double> notes = notes_beside(run, graph, window);
  const std::vector<std::int64_t> taken = out.node_ns;
  const auto part_of = [&](std::uint32_t node, double slice_ns) {
    const auto most =
        (1 - kOwnPart) * static_cast<double>(graph.costs.cost_ns[node]) - static_cast<double>(taken[node]);
    return static_cast<std::int64_t>(std::min(std::max(most, 0.0), notes[node] * slice_ns / 2));
  };
  const auto total = [&](double slice_ns) {
    std::int64_t sum = 0;
    for (const std::uint32_t node : longer.work) sum += part_of(node, slice_ns);
    return static_cast<double>(sum);
  };
  double low = 0, high = longer.most_slice_ns;
  for (int i = 0; i < 30; i++) {
    const double middle = (low + high) / 2;
    (total(middle) < longer.excess_ns ? low : high) = middle;
  }
  const auto take_off = [&](std::uint32_t node) { out.node_ns[node] += part_of(node, low); };
  if (longer.is_part) {
    std::for_each(longer.work.begin(), longer.work.end(), take_off);
    return;
  }
  for (std::uint32_t node = 0; node < graph.size(); node++) take_off(node);
  // What no note explains: all runs slower where a recorder fills the caches.
  if (!longer.is_all) return;
  double work_ns = 0;
  for (const std::uint32_t node : longer.work) {
    work_ns += static_cast<double>(graph.costs.cost_ns[node] - out.node_ns[node]);
  }
  const double more = (longer.excess_ns - total(low)) / std::max(work_ns, 1.0);
  if (more < kTelling || more > kMostMore) return;
  for (const std::uint32_t node : longer.work) {
    const auto cost = static_cast<double>(graph.costs.cost_ns[node] - out.node_ns[node]);
    out.node_ns[node] += static_cast<std::int64_t>(more * cost);
  }
}

// The same part by part, where the marks of recorded steps and of all others tell how much longer each of them is.
// `host_alone`: a device takes the time of the steps, so that what counts is how long the host takes where it does not
// wait: in the step in which a part is shortest, of those recorded and of the others. Returns false where the parts do
// not tell of what the steps are longer.
bool take_off_notes_by_part(const Run& run, const ReplayGraph& graph, const StepWindow& window, const UsualStep& usual,
                            const Longer& longer, bool host_alone, double hidden_ns, RecordingCost& out) {
  constexpr double kLeastTold = 0.5;  // of what is longer
  constexpr auto kRest = static_cast<std::size_t>(Part::rest);
  const Trace& trace = run.traces[window.trace];
  // Without a device hardly any part is longer than another, and what happens every few steps is in one of them.
  if (trace.device.size() == 0) return false;
  const MarkedParts when = recorded_parts(trace);
  if (when.forward.empty() || when.backward.empty()) return false;
  const auto part_of = [&](std::uint32_t node) {
    // Autograd's own threads do nothing else.
    if (graph.lane[node] != window.lane) return Part::backward;
    return when.at(graph.start_ns[node] - trace.clock.offset_ns);
  };
  struct Of {
    std::vector<std::uint32_t> work;
    std::map<StepId, double> step_ns;
    double recorded_ns = 0, usual_ns = 0, shortest_ns = 0;
  };
  std::array<Of, kParts> parts;
  for (const std::uint32_t node : longer.work) {
    Of& part = parts[static_cast<std::size_t>(part_of(node))];
    part.work.push_back(node);
    part.step_ns[trace.step_at(graph.start_ns[node] - trace.clock.offset_ns)] +=
        static_cast<double>(graph.costs.cost_ns[node] - out.node_ns[node]);
  }
  for (std::size_t p = 0; p < kParts; p++) {
    // What either side does not know as a part of its own is in the rest of both.
    const bool known = p == kRest || (!parts[p].work.empty() && usual.parts_ns[p] > 0);
    if (!known && (p == static_cast<std::size_t>(Part::forward) || p == static_cast<std::size_t>(Part::backward)))
      return false;
    Of& to = parts[known ? p : kRest];
    to.recorded_ns += usual.recorded_parts_ns[p];
    to.usual_ns += usual.parts_ns[p];
    to.shortest_ns += usual.shortest_parts_ns[p];
    if (known) continue;
    to.work.insert(to.work.end(), parts[p].work.begin(), parts[p].work.end());
    for (const auto& [step, ns] : parts[p].step_ns) to.step_ns[step] += ns;
    parts[p].work.clear();
  }
  const auto steps = static_cast<double>(window.steps);
  std::array<Longer, kParts> each;
  double total_ns = 0;
  for (std::size_t p = 0; p < kParts; p++) {
    Of& part = parts[p];
    part.step_ns.erase(StepId::none);
    if (part.work.empty() || part.step_ns.empty()) continue;
    const auto least = std::min_element(part.step_ns.begin(), part.step_ns.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    const double more_ns = host_alone ? least->second - part.shortest_ns : part.recorded_ns - part.usual_ns;
    each[p] = {.work = std::move(part.work),
               .excess_ns = std::max(0.0, more_ns * steps),
               .is_part = true,
               .most_slice_ns = kMostSliceOfPartNs};
    total_ns += each[p].excess_ns;
  }
  if (total_ns <= 0 || total_ns < kLeastTold * longer.excess_ns) return false;
  // What the host hid behind its device is longer in the same parts; where it waits for none the steps say how much.
  const double scale = host_alone ? 1 + hidden_ns / total_ns : longer.excess_ns / total_ns;
  for (Longer& part : each) {
    part.excess_ns *= scale;
    take_off_notes(run, graph, window, part, out);
  }
  return true;
}

// The steps of a service are not marked, but its forward passes are.
void cost_of_passes(const Run& run, const ReplayGraph& graph, const StepWindow& window, RecordingCost& out) {
  constexpr std::size_t kFewestFree = 20, kFewestRecorded = 3;
  const Trace& trace = run.traces[window.trace];
  const auto history = std::find_if(run.history.begin(), run.history.end(),
                                    [&](const Trace& one) { return one.rank.rank == trace.rank.rank; });
  if (history == run.history.end() || graph.lanes[window.lane].device) return;
  if (!has_unix_time(trace)) return;
  const std::vector<Interval> busy = times_recorded(run);
  const std::int64_t base_ns = trace.clock_base_ns - trace.clock.offset_ns;  // of the run's clock, as Unix time
  std::vector<Interval> inside;
  std::vector<double> free_ns, recorded_ns;
  for (std::size_t row = 0; row < history->slices.size(); row++) {
    if (static_cast<Phase>(history->slices.phase[row]) != Phase::forward) continue;
    const std::int64_t start = history->slices.start_ns[row], dur = history->slices.dur_ns[row];
    const auto dur_ns = static_cast<double>(dur);
    if (start - base_ns >= window.start_ns && start + dur - base_ns <= window.end_ns) {
      inside.push_back({start - base_ns, start + dur - base_ns});
      recorded_ns.push_back(dur_ns);
    } else if (std::none_of(busy.begin(), busy.end(),
                            [&](Interval one) { return one.start < start + dur && one.end > start; })) {
      free_ns.push_back(dur_ns);
    }
  }
  free_ns.erase(free_ns.begin(), free_ns.begin() + static_cast<std::ptrdiff_t>(free_ns.size() / 5));  // they warm up
  if (free_ns.size() < kFewestFree || recorded_ns.size() < kFewestRecorded) return;
  const double free_mean = middle_mean(std::move(free_ns)), recorded_mean = middle_mean(recorded_ns);
  if (free_mean <= 0 || recorded_mean <= 0) return;
  const double usual = free_mean / recorded_mean;
  Longer longer;
  longer.excess_ns = (1 - usual) * std::accumulate(recorded_ns.begin(), recorded_ns.end(), 0.0);
  const Intervals passes = make_intervals(std::move(inside));
  bool runs_model = false;  // the busiest thread may be another one
  for (const std::uint32_t node : graph.lanes[window.lane].nodes) {
    const auto after = std::upper_bound(passes.begin(), passes.end(), graph.start_ns[node],
                                        [](std::int64_t t, const Interval& pass) { return t < pass.start; });
    if (after == passes.begin() || graph.start_ns[node] >= (after - 1)->end) continue;
    longer.work.push_back(node);
    const SliceId slice = graph.slice[node];
    runs_model |= slice != SliceId::none && static_cast<Phase>(trace.slices.phase[slice]) == Phase::forward;
  }
  if (!runs_model) return;
  out.node_ns.resize(graph.size());
  take_off_notes(run, graph, window, longer, out);
}

// What our own hooks take between two steps stands in the recording as the program's code there.
void take_off_boundaries(const Run& run, const ReplayGraph& graph, const StepWindow& window, RecordingCost& out) {
  constexpr std::int64_t kMostBoundaryNs = 100'000'000;  // a setting of a file, which may hold anything
  const Trace& trace = run.traces[window.trace];
  const std::int64_t each_ns = number_set(trace, "boundary_ns").value_or(0);
  if (!window.whole_steps || each_ns <= 0 || each_ns > kMostBoundaryNs) return;
  out.node_ns.resize(graph.size());
  const std::vector<std::uint32_t>& nodes = graph.lanes[window.lane].nodes;
  const auto is_code = [&](std::uint32_t node) {
    const SliceId slice = graph.slice[node];
    if (slice == SliceId::none) return true;
    const SliceKind kind = trace.kind(slice);
    return kind != SliceKind::cpu_op && kind != SliceKind::runtime &&
           uneven_index(trace.slices.phase[slice]) == kUneven.size();
  };
  for (const Step& step : trace.steps) {
    const std::int64_t begin_ns = step.start_ns + trace.clock.offset_ns;
    if (begin_ns < window.start_ns || begin_ns >= window.end_ns) continue;
    const auto at = std::lower_bound(nodes.begin(), nodes.end(), begin_ns,
                                     [&](std::uint32_t node, std::int64_t t) { return graph.start_ns[node] < t; });
    // Before the step's range begins, between the ranges or at the end of the last one, and at its beginning.
    const auto place = at - nodes.begin();
    std::int64_t left_ns = each_ns;
    for (const std::ptrdiff_t i : {place - 1, place - 2, place}) {
      if (i < 0 || i >= static_cast<std::ptrdiff_t>(nodes.size())) continue;
      const std::uint32_t node = nodes[static_cast<std::size_t>(i)];
      if (graph.start_ns[node] < window.start_ns || !is_code(node) || out.node_ns[node] > 0) continue;
      const auto most = static_cast<std::int64_t>((1 - kOwnPart) * static_cast<double>(graph.costs.cost_ns[node]));
      const std::int64_t taken = std::min(left_ns, most);
      out.node_ns[node] = taken;
      left_ns -= taken;
    }
  }
}

// Our recorder itself begins in the first step: what that has before its first operator, and the others have not, is
// none of the program's.
void take_off_start(const Run& run, const ReplayGraph& graph, const StepWindow& window, RecordingCost& out) {
  constexpr std::size_t kFewestSteps = 3;
  constexpr std::int64_t kMostStartNs = 10'000'000;
  const Trace& trace = run.traces[window.trace];
  if (!window.whole_steps || !number_set(trace, "boundary_ns")) return;  // it is not ours that recorded
  out.node_ns.resize(graph.size());
  // Ranges that the program or its libraries have there say what it does.
  const auto is_bare = [&](SliceId slice) {
    return slice == SliceId::none || trace.slices.parent[slice] == SliceId::none;
  };
  struct Head {
    std::int64_t ns = 0;
    std::vector<std::uint32_t> nodes;
    bool is_over = false;
  };
  std::map<StepId, Head> heads;
  for (const std::uint32_t node : graph.lanes[window.lane].nodes) {
    if (graph.start_ns[node] < window.start_ns || graph.start_ns[node] >= window.end_ns) continue;
    const StepId step = trace.step_at(graph.start_ns[node] - trace.clock.offset_ns);
    if (step == StepId::none) continue;
    Head& head = heads[step];
    const SliceId slice = graph.slice[node];
    head.is_over |= slice != SliceId::none && trace.kind(slice) == SliceKind::cpu_op;
    if (head.is_over || !is_bare(slice)) continue;
    head.ns += graph.costs.cost_ns[node] - out.node_ns[node];
    head.nodes.push_back(node);
  }
  if (heads.size() < kFewestSteps) return;
  std::vector<std::int64_t> others;
  for (auto at = std::next(heads.begin()); at != heads.end(); ++at) others.push_back(at->second.ns);
  const Head& first = heads.begin()->second;
  std::int64_t more_ns = std::min(first.ns - median(std::move(others)).value_or(first.ns), kMostStartNs);
  for (const std::uint32_t node : first.nodes) {
    const std::int64_t taken = std::clamp<std::int64_t>(more_ns, 0, graph.costs.cost_ns[node] - out.node_ns[node]);
    out.node_ns[node] += taken;
    more_ns -= taken;
  }
}

}  // namespace

RecordingCost recording_cost(const Run& run, const ReplayGraph& graph, const StepWindow& window, double hidden_ns) {
  RecordingCost out;
  if (window.lane == kNone) return out;
  take_off_core_waits(run, graph, window, out.node_ns);
  take_off_boundaries(run, graph, window, out);
  take_off_start(run, graph, window, out);
  UsualStep usual = window.whole_steps ? usual_step(run, window) : UsualStep{};
  if (usual.work_ns <= 0) {
    cost_of_passes(run, graph, window, out);
    return out;
  }
  out.node_ns.resize(graph.size());
  const auto steps = static_cast<double>(window.steps);
  const Trace& trace = run.traces[window.trace];
  std::vector<std::uint32_t> uneven[kUneven.size()];
  Uneven recorded_ns{};
  Longer longer{.excess_ns = static_cast<double>(window.end_ns - window.start_ns) - usual.work_ns * steps};
  for (const std::uint32_t lane : lanes_of_steps(graph, window)) {
    for (const std::uint32_t node : graph.lanes[lane].nodes) {
      if (graph.start_ns[node] < window.start_ns || graph.start_ns[node] >= window.end_ns) continue;
      const SliceId slice = graph.slice[node];
      const std::size_t phase = slice == SliceId::none ? kUneven.size() : uneven_index(trace.slices.phase[slice]);
      if (phase == kUneven.size()) {
        longer.work.push_back(node);
      } else {
        uneven[phase].push_back(node);
        recorded_ns[phase] += static_cast<double>(graph.costs.cost_ns[node]);
        longer.excess_ns -= static_cast<double>(graph.costs.cost_ns[node]);
      }
    }
  }
  // Else what the marks call work has in it what the recording knows as a phase.
  bool phases_known = true;
  for (std::size_t p = 0; p < kUneven.size(); p++) {
    phases_known = phases_known && (recorded_ns[p] <= 0 || usual.uneven_ns[p] > 0);
  }
  if (phases_known) {
    longer.excess_ns -= usual.now_and_then_ns * steps;
    count_long_steps(usual);
    take_off_hold_ups(run, graph, window, usual, longer.work, out.node_ns);
  } else {
    usual.now_and_then = 0;  // it may be such a phase
  }
  std::map<StepId, double> host_ns;  // per recorded step
  for (const std::uint32_t node : longer.work) {
    longer.excess_ns -= static_cast<double>(out.node_ns[node]);
    host_ns[trace.step_at(graph.start_ns[node] - trace.clock.offset_ns)] +=
        static_cast<double>(graph.costs.cost_ns[node] - out.node_ns[node]);
  }
  host_ns.erase(StepId::none);
  if (usual.now_and_then > 0 && host_ns.size() == usual.by_length_ns.size()) {
    // What a long step takes is its own: the others show what recording costs.
    std::vector<std::pair<double, StepId>> by_length;
    for (const auto& [step, ns] : host_ns) by_length.emplace_back(ns, step);
    std::sort(by_length.begin(), by_length.end(), std::greater<>());
    longer.excess_ns = 0;
    for (std::size_t k = 0; k < by_length.size(); k++) {
      if (k < usual.now_and_then) out.long_steps.push_back(by_length[k].second);
      if (k >= usual.now_and_then) longer.excess_ns += by_length[k].first - usual.by_length_ns[k];
    }
    longer.excess_ns *= steps / static_cast<double>(by_length.size() - usual.now_and_then);
  }
  longer.is_all = is_alone(run, window);
  // Where a device takes the time, steps are no longer for being recorded, but their host is, and binds once the device
  // has less to do. How long it takes alone, steps show in which it does not have to wait for the device; where steps
  // differ, one of the shortest is to be compared with the shortest that was recorded.
  const bool host_alone = !host_ns.empty() && busiest_stream(graph, window) >= kMostOfWindow;
  if (host_alone) {
    const auto least = std::min_element(host_ns.begin(), host_ns.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    longer.excess_ns = std::max(longer.excess_ns, (least->second - usual.shortest_ns) * steps);
  }
  longer.excess_ns = std::max(longer.excess_ns, 0.0) + hidden_ns;
  if (longer.excess_ns > 0 && !take_off_notes_by_part(run, graph, window, usual, longer, host_alone, hidden_ns, out))
    take_off_notes(run, graph, window, longer, out);
  out.usual_ns = usual.work_ns;
  for (std::size_t p = 0; p < kUneven.size(); p++) {
    if (recorded_ns[p] > 0) out.usual_ns += usual.uneven_ns[p];
  }
  make_usual(run, graph, window, usual, longer.work, phases_known, out.node_ns);
  for (std::size_t p = 0; p < kUneven.size(); p++) {
    if (recorded_ns[p] <= 0 || usual.uneven_ns[p] <= 0) continue;
    const double left = usual.uneven_ns[p] * steps / recorded_ns[p];
    for (const std::uint32_t node : uneven[p]) {
      const auto cost = static_cast<double>(graph.costs.cost_ns[node]);
      out.node_ns[node] = static_cast<std::int64_t>(cost * (1 - left));
    }
  }
  return out;
}

}  // namespace stepscope::simulate
