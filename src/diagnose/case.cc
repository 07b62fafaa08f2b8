#include "diagnose/case.h"

#include <utility>

#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// The outermost operator around a slice, itself included.
SliceId operation_of(const Trace& trace, SliceId slice) {
  SliceId out = SliceId::none;
  for (SliceId at = slice; at != SliceId::none; at = trace.slices.parent[at]) {
    if (trace.kind(at) == SliceKind::cpu_op) out = at;
  }
  return out;
}

}  // namespace

Case::Case(const Run& all, const simulate::Predictor& player, simulate::Prediction played)
    : run(all),
      predictor(player),
      now(std::move(played)),
      trace(all.traces[now.window.trace]),
      path(player.path_of(now)),
      steps(now.window.steps),
      places(all),
      on_path_(player.graph().size(), 0) {
  for (const simulate::PathPiece& piece : path) {
    on_path_[piece.node] += piece.until_ns - piece.from_ns;
    path_ns += piece.until_ns - piece.from_ns;
  }
}

Work Case::work(std::uint32_t node) const {
  const simulate::ReplayGraph& graph = predictor.graph();
  const simulate::Lane& lane = graph.lanes[graph.lane[node]];
  const Trace& of = run.traces[lane.trace];
  Work work{.trace = &of,
            .role = graph.role[node],
            .device = lane.device,
            .track = lane.track,
            .start_ns = graph.start_ns[node] - of.clock.offset_ns,
            .cost_ns = graph.costs.cost_ns[node],
            .slice = graph.slice[node]};
  const SliceId inside = lane.device ? of.device.op[graph.row[node]] : work.slice;
  if (inside != SliceId::none) work.operation = operation_of(of, inside);
  return work;
}

std::vector<Operation> Case::operations(const Trace& of) const {
  std::vector<Operation> out;
  const simulate::ReplayGraph& graph = predictor.graph();
  for (const simulate::StepWindow& window : predictor.windows()) {
    if (&run.traces[window.trace] != &of || window.lane == simulate::kNone) continue;
    for (const std::uint32_t node : graph.lanes[window.lane].nodes) {
      const Work one = work(node);
      if (one.device) break;
      if (one.operation == SliceId::none) {
        if (out.empty()) continue;
        out.back().after.push_back(node);
        out.back().after_ns += one.cost_ns;
        continue;
      }
      if (out.empty() || out.back().slice != one.operation) out.push_back({.slice = one.operation});
      out.back().nodes.push_back(node);
      out.back().cost_ns += one.cost_ns;
    }
  }
  return out;
}

Code Case::code(const Work& work) const {
  if (work.operation != SliceId::none) return places.of_operator(*work.trace, work.operation);
  return work.device ? Code() : places.between(*work.trace, work.track, work.start_ns);
}

}  // namespace stepscope::diagnose
