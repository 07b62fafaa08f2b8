#include "diagnose/unrecorded.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "model/copy_way.h"
#include "simulate/recording_cost.h"

namespace stepscope::diagnose {
namespace {

// Adds what the nodes cost where nobody records. Returns the usual step in ns, 0: not known.
double add_unrecorded(const Run& run, const simulate::ReplayGraph& graph, const simulate::StepWindow& window,
                      double hidden_ns, Unrecorded& to) {
  const simulate::RecordingCost cost = simulate::recording_cost(run, graph, window, hidden_ns);
  for (std::uint32_t node = 0; node < cost.node_ns.size(); node++) {
    const std::int64_t left_ns = graph.costs.cost_ns[node] - cost.node_ns[node];
    if (cost.node_ns[node] != 0) to.rewrite.nodes.push_back({node, left_ns, left_ns});
  }
  to.long_steps = cost.long_steps;
  return cost.usual_ns;
}

// Of the window: copies through memory that the driver cannot hand to the device as it is, and the calls that ask for
// them, which copy too. How fast they are changes while a job warms up: 4 GB/s in its first thirty steps on one
// machine, 11 behind them.
std::vector<std::uint32_t> pageable_copies(const Run& run, const simulate::ReplayGraph& graph,
                                           const simulate::StepWindow& window) {
  const Trace& trace = run.traces[window.trace];
  std::vector<std::uint32_t> out, host;
  std::set<SliceId> calls;
  for (std::uint32_t node = 0; node < graph.size(); node++) {
    const std::uint32_t lane = graph.lane[node];
    if (lane == simulate::kNone || graph.lanes[lane].trace != window.trace || graph.slice[node] == SliceId::none)
      continue;
    if (graph.start_ns[node] < window.start_ns || graph.start_ns[node] >= window.end_ns) continue;
    if (!graph.lanes[lane].device) {
      host.push_back(node);
    } else if (copy_way(trace.name(graph.slice[node])).pageable()) {
      out.push_back(node);
      calls.insert(trace.device.launch[graph.row[node]]);
    }
  }
  std::copy_if(host.begin(), host.end(), std::back_inserter(out),
               [&](std::uint32_t node) { return calls.contains(graph.slice[node]); });
  return out;
}

// Where steps are still longer than usual with all that recording may cost taken off, such copies were slower than
// usual: they are made as short as the steps say, if that can be what the steps are longer by.
void shorten_copies(const Run& run, const simulate::Predictor& predictor, double usual_ns, Unrecorded& out) {
  constexpr int kTurns = 6;
  constexpr double kFar = 1.1, kLeastLeft = 0.1;
  if (static_cast<double>(out.now.after_ns[1]) < kFar * usual_ns) return;
  const std::vector<std::uint32_t> copies = pageable_copies(run, predictor.graph(), predictor.windows().front());
  if (copies.empty()) return;
  const simulate::Rewrite notes = out.rewrite;
  const std::vector<std::int64_t> costs = out.now.costs.cost_ns;
  const auto with_left = [&](double left) {
    simulate::Rewrite shorter = notes;
    for (const std::uint32_t node : copies) {
      const auto cost_ns = static_cast<std::int64_t>(left * static_cast<double>(costs[node]));
      shorter.nodes.push_back({node, cost_ns, cost_ns});
    }
    return shorter;
  };
  const auto is_long = [&](const simulate::Prediction& now) { return static_cast<double>(now.after_ns[1]) > usual_ns; };
  const Result<simulate::Prediction> shortest = predictor.predict({}, with_left(kLeastLeft));
  if (!shortest || is_long(*shortest)) return;
  double least = kLeastLeft, most = 1;
  for (int turn = 0; turn < kTurns; turn++) {
    const double left = (least + most) / 2;
    simulate::Rewrite shorter = with_left(left);
    Result<simulate::Prediction> now = predictor.predict({}, shorter);
    if (!now) return;
    if (is_long(*now)) {
      most = left;
      out = {.rewrite = std::move(shorter), .now = *std::move(now)};
    } else {
      least = left;
    }
  }
}

}  // namespace

// A host that waits for its device within a step hides there some of what recording costs it: without that cost it
// waits the longer, and the step is not as short as usual. So more is taken off the host of a single rank, as long as a
// quarter of that makes steps shorter: where the device alone takes the time, nothing does.
Result<Unrecorded> without_recording(const Run& run, const simulate::Predictor& predictor) {
  constexpr int kMostTurns = 8;
  constexpr double kNear = 1.01, kLeastOfIt = 0.25;
  const simulate::ReplayGraph& graph = predictor.graph();
  Unrecorded out;
  double usual_ns = 0;
  for (const simulate::StepWindow& window : predictor.windows()) {
    usual_ns = add_unrecorded(run, graph, window, 0, out);
  }
  if (predictor.windows().size() != 1) out.long_steps.clear();  // whose they are is not told
  Result<simulate::Prediction> now = predictor.predict({}, out.rewrite);
  if (!now) return fail(now.error());
  out.now = *std::move(now);
  if (predictor.windows().size() != 1 || usual_ns <= 0) return out;
  const simulate::StepWindow& window = predictor.windows().front();
  if (run.traces[window.trace].device.size() == 0) return out;
  // Marks are the host's: the device may still work when its last step has ended.
  const std::int64_t host_ns = (window.end_ns - window.start_ns) / window.steps;
  usual_ns += static_cast<double>(std::max<std::int64_t>(out.now.now_ns - host_ns, 0));
  double hidden_ns = 0;
  for (int turn = 0; turn < kMostTurns; turn++) {
    const auto so_far = static_cast<double>(out.now.after_ns[1]);
    if (so_far < kNear * usual_ns) break;
    const double more_ns = so_far - usual_ns;
    hidden_ns += more_ns * static_cast<double>(window.steps);
    Unrecorded next;
    add_unrecorded(run, graph, window, hidden_ns, next);
    Result<simulate::Prediction> shorter = predictor.predict({}, next.rewrite);
    if (!shorter || so_far - static_cast<double>(shorter->after_ns[1]) < kLeastOfIt * more_ns) break;
    next.now = *std::move(shorter);
    out = std::move(next);
  }
  shorten_copies(run, predictor, usual_ns, out);
  return out;
}

}  // namespace stepscope::diagnose
