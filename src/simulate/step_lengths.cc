#include "simulate/step_lengths.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "model/answer_parts.h"
#include "model/host_names.h"
#include "model/lookup.h"
#include "model/settings.h"
#include "model/taken_memory.h"
#include "model/telemetry.h"
#include "model/windows.h"
#include "simulate/step_pieces.h"

namespace stepscope::simulate {
namespace {

// How much of a step's difference from the usual ones is each node's, by which pieces differ among the recorded steps:
// memory that comes from the system in some of them, an operator whose sizes change. A twentieth of what each piece
// takes counts as well: where all is alike, all of it is longer or shorter.
std::vector<double> shares_by_difference(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                                         const std::vector<std::int64_t>& node_ns) {
  constexpr double kOfAll = 0.05;
  std::vector<double> out(graph.size(), 0);
  for (const StepPieces& steps : step_pieces(run, graph, window, node_ns)) {
    std::vector<std::int64_t> each;
    for (const auto& [step, piece] : steps) each.push_back(piece.ns);
    each.resize(std::max(each.size(), static_cast<std::size_t>(window.steps)));  // 0 where a step has none
    const std::int64_t middle = median(each).value_or(0);
    double differs = 0;
    for (const std::int64_t ns : each) differs += static_cast<double>(std::abs(ns - middle));
    differs /= static_cast<double>(each.size());
    for (const auto& [step, piece] : steps) {
      if (piece.ns <= 0) continue;
      const double share = kOfAll + differs / static_cast<double>(piece.ns);
      for (const std::uint32_t node : piece.nodes) {
        out[node] = share * static_cast<double>(graph.costs.cost_ns[node] - node_ns[node]);
      }
    }
  }
  return out;
}

// The same where the process waited for more pages of new memory in its usual steps than in the recorded ones, or for
// fewer: the difference is that of operators that take memory, by how much they take.
std::vector<double> shares_by_memory(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                                     const std::vector<std::int64_t>& node_ns) {
  const Trace& trace = run.traces[window.trace];
  struct Takes {
    double bytes = 0, cost_ns = 0;
  };
  std::map<SliceId, Takes> takes;
  for (const auto& [by, bytes] : taken_from_system(trace)) takes[by].bytes = bytes;
  const std::vector<std::uint32_t> lanes = lanes_of_steps(graph, window);
  const auto for_each_taker = [&](const auto& visit) {
    for (const std::uint32_t lane : lanes) {
      for (const std::uint32_t node : graph.lanes[lane].nodes) {
        const auto found = takes.find(outermost_operator(trace, graph.slice[node]));
        if (found != takes.end())
          visit(found->second, node, static_cast<double>(graph.costs.cost_ns[node] - node_ns[node]));
      }
    }
  };
  for_each_taker([](Takes& one, std::uint32_t, double cost_ns) { one.cost_ns += cost_ns; });
  std::vector<double> out(graph.size(), 0);
  double total = 0;
  for_each_taker([&](const Takes& one, std::uint32_t node, double cost_ns) {
    if (one.cost_ns > 0) out[node] = one.bytes * cost_ns / one.cost_ns;
    total += out[node];
  });
  if (total <= 0) out.clear();  // no memory is recorded
  return out;
}

// Takes so much off the nodes (below 0: adds it), by their shares, or evenly where there are none. No work goes, or
// becomes many times what it was when `before_ns` had been taken off: what that leaves is given back.
double spread(const ReplayGraph& graph, const std::vector<std::uint32_t>& nodes, const std::vector<double>& shares,
              double excess_ns, const std::vector<std::int64_t>& before_ns, std::vector<std::int64_t>& node_ns) {
  constexpr double kLeastLeft = 0.1, kMostLeft = 4;
  const auto cost = [&](std::uint32_t node) {
    return std::max(0.0, static_cast<double>(graph.costs.cost_ns[node] - before_ns[node]));
  };
  const auto share = [&](std::uint32_t node) { return shares.empty() ? cost(node) : shares[node]; };
  double total = 0, left_ns = excess_ns;
  for (const std::uint32_t node : nodes) total += share(node);
  for (const std::uint32_t node : nodes) {
    const double wanted = total > 0 ? excess_ns * share(node) / total : 0;
    const auto so_far = static_cast<double>(node_ns[node] - before_ns[node]);
    const auto sum = std::clamp(so_far + wanted, (1 - kMostLeft) * cost(node), (1 - kLeastLeft) * cost(node));
    node_ns[node] = before_ns[node] + static_cast<std::int64_t>(sum);
    left_ns -= sum - so_far;
  }
  return left_ns;
}

// For how many more pages the process waits in its recorded steps than in the usual ones, if they are many; below 0:
// for fewer; 0: for about as many, or nobody counted.
double more_pages(const Run& run, const Trace& trace, const StepWindow& window) {
  const Trace* history = marks_of_rank(run, trace.rank.rank);
  const auto recorded = page_faults_per_step(trace);
  const auto usual = history == nullptr ? std::nullopt : usual_page_faults(*history, trace, window.steps);
  return usual && recorded && std::abs(*recorded - *usual) >= kManyPageFaults ? *recorded - *usual : 0;
}

// One that was recorded: what its nodes of work take without what was taken off them, and those that are code of the
// program beside its operators.
struct RecordedStep {
  StepId step = StepId::none;
  double work_ns = 0, code_ns = 0;
  std::vector<std::uint32_t> code, all;

  // It may have waited for a disk or a network, which takes as long as it likes.
  bool is_code() const {
    constexpr double kMostOfStep = 0.5;
    return code_ns >= kMostOfStep * work_ns;
  }
};

// The longest first.
std::vector<RecordedStep> recorded_steps(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                                         const std::vector<std::uint32_t>& work,
                                         const std::vector<std::int64_t>& node_ns) {
  const Trace& trace = run.traces[window.trace];
  std::map<StepId, RecordedStep> steps;
  for (const std::uint32_t node : work) {
    const StepId step = trace.step_at(graph.start_ns[node] - trace.clock.offset_ns);
    if (step == StepId::none) continue;
    const auto cost = static_cast<double>(graph.costs.cost_ns[node] - node_ns[node]);
    RecordedStep& own = steps[step];
    own.step = step;
    own.work_ns += cost;
    own.all.push_back(node);
    const SliceId slice = graph.slice[node];
    const SliceKind kind = slice == SliceId::none ? SliceKind::other : trace.kind(slice);
    const bool collects = slice != SliceId::none && trace.name(slice) == kGarbageCollection;
    if (!collects && (kind == SliceKind::cpu_op || kind == SliceKind::runtime)) continue;
    const auto phase = slice == SliceId::none ? Phase::other : static_cast<Phase>(trace.slices.phase[slice]);
    if (phase == Phase::backward || phase == Phase::communication) continue;  // it waits for others there
    own.code_ns += cost;
    own.code.push_back(node);
  }
  std::vector<RecordedStep> out;
  for (auto& [step, own] : steps) out.push_back(std::move(own));
  std::stable_sort(out.begin(), out.end(),
                   [](const RecordedStep& a, const RecordedStep& b) { return a.work_ns > b.work_ns; });
  return out;
}

}  // namespace

bool is_alone(const Run& run, const StepWindow& window) {
  return timelines(run).size() == 1 && run.traces[window.trace].device.size() == 0;
}

std::vector<std::uint32_t> lanes_of_steps(const ReplayGraph& graph, const StepWindow& window) {
  std::vector<std::uint32_t> out{window.lane};
  for (std::uint32_t node = 0; node < graph.size(); node++) {
    const std::uint32_t lane = graph.lane[node];
    if (lane == kNone || graph.lanes[lane].device || graph.lanes[lane].trace != window.trace) continue;
    if (std::find(out.begin(), out.end(), lane) != out.end()) continue;
    const auto edges = graph.edges_of(node);
    const bool called = std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
      return edge.why == WaitEvidence::autograd && graph.lane[edge.from] == window.lane;
    });
    if (called) out.push_back(lane);
  }
  return out;
}

void take_off_hold_ups(const Run& run, const ReplayGraph& graph, const StepWindow& window, const UsualStep& usual,
                       const std::vector<std::uint32_t>& work, std::vector<std::int64_t>& node_ns) {
  constexpr double kFarOff = 0.5;
  constexpr std::size_t kFewestSteps = 3;
  if (!is_alone(run, window) || usual.by_length_ns.size() < kFewestSteps) return;
  const std::vector<RecordedStep> by_length = recorded_steps(run, graph, window, work, node_ns);
  if (by_length.size() != usual.by_length_ns.size()) return;
  std::vector<double> more_ns;
  for (std::size_t k = 0; k < by_length.size(); k++) more_ns.push_back(by_length[k].work_ns - usual.by_length_ns[k]);
  std::vector<double> sorted = more_ns;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  HeldUp held;
  for (std::size_t k = usual.now_and_then; k < by_length.size(); k++) {
    const double held_ns = std::min(more_ns[k] - std::max(*middle, 0.0), by_length[k].work_ns);
    if (by_length[k].is_code() || held_ns <= 0 || held_ns <= kFarOff * usual.by_length_ns[k]) continue;
    held.most_ns.emplace(static_cast<std::size_t>(by_length[k].step), static_cast<std::int64_t>(held_ns));
  }
  if (held.most_ns.empty()) return;
  const Trace& trace = run.traces[window.trace];
  held.may_be = [&](std::uint32_t node) {
    const SliceId slice = graph.slice[node];
    return slice != SliceId::none && trace.kind(slice) == SliceKind::cpu_op &&
           trace.name(slice).starts_with("aten::") && uneven_index(trace.slices.phase[slice]) == kUneven.size();
  };
  held.others_have_it = true;
  take_off_longer(run, graph, window, held, node_ns);
}

void make_usual(const Run& run, const ReplayGraph& graph, const StepWindow& window, const UsualStep& usual,
                const std::vector<std::uint32_t>& work, bool phases_known, std::vector<std::int64_t>& node_ns) {
  constexpr double kFarOff = 0.2, kFarOffCode = 0.08, kFarOffByPages = 0.05;
  const Trace& trace = run.traces[window.trace];
  const std::vector<RecordedStep> by_length = recorded_steps(run, graph, window, work, node_ns);
  if (by_length.size() != usual.by_length_ns.size()) return;
  const std::vector<std::int64_t> before_ns = node_ns;
  std::vector<double> shares;
  const double pages = phases_known && is_alone(run, window) ? more_pages(run, trace, window) : 0;
  const std::vector<double> by_memory =
      pages == 0 ? std::vector<double>() : shares_by_memory(run, graph, window, before_ns);
  for (std::size_t k = 0; k < by_length.size(); k++) {
    const RecordedStep& own = by_length[k];
    const double excess_ns = own.work_ns - usual.by_length_ns[k];
    if (excess_ns < 0 && trace.device.size() > 0) continue;  // the rest the host waited for its device
    const bool is_code = own.is_code();
    const bool is_paging = !is_code && !by_memory.empty() && (pages > 0) == (excess_ns > 0);
    // Ranks wait for one another in their code, and hosts for their devices.
    const double far_off = is_paging ? kFarOffByPages : is_code && is_alone(run, window) ? kFarOffCode : kFarOff;
    if (std::abs(excess_ns) < far_off * usual.by_length_ns[k]) continue;
    if (!is_code && (!phases_known || !is_alone(run, window))) continue;
    if (!is_code && !is_paging && shares.empty()) shares = shares_by_difference(run, graph, window, before_ns);
    double left_ns = excess_ns;
    if (!is_code) left_ns = spread(graph, own.all, is_paging ? by_memory : shares, left_ns, before_ns, node_ns);
    spread(graph, is_code ? own.code : own.all, {}, left_ns, before_ns, node_ns);
  }
}

}  // namespace stepscope::simulate
