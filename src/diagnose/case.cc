#include "diagnose/case.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "diagnose/unrecorded.h"
#include "model/host_names.h"
#include "model/module_paths.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// Per slice: the outermost operator around it, itself included.
std::vector<SliceId> outermost_operators(const Trace& trace) {
  std::vector<SliceId> out(trace.slices.size(), SliceId::none);
  for (const SliceId slice : trace.by_track.span()) {  // parents before children
    const SliceId parent = trace.slices.parent[slice];
    SliceId& found = out[static_cast<std::size_t>(slice)];
    if (parent != SliceId::none) found = out[static_cast<std::size_t>(parent)];
    if (found == SliceId::none && trace.kind(slice) == SliceKind::cpu_op && trace.name(slice) != kGarbageCollection) {
      found = slice;
    }
  }
  return out;
}

struct Modules {
  mutable std::vector<std::shared_ptr<const ModulePaths>> of;  // per trace; none: nobody has asked yet
};

// The path of the innermost module that the work belongs to; empty: of none, or modules were not recorded.
std::string module_of(const Case& about, const Work& work) {
  if (work.trace->modules.empty()) return {};
  const Modules& modules = about.shared<Modules>([](const Case& one) {
    Modules none;
    none.of.resize(one.run.traces.size());
    return none;
  });
  std::shared_ptr<const ModulePaths>& paths =
      modules.of[static_cast<std::size_t>(work.trace - about.run.traces.data())];
  if (paths == nullptr) paths = std::make_shared<const ModulePaths>(*work.trace);
  const std::uint32_t node = paths->node_of(work.inside);
  return node == ModulePaths::none ? std::string() : paths->nodes()[node].path;
}

}  // namespace

Result<Case> Case::of(const Run& run, const simulate::Predictor& predictor) {
  Result<Unrecorded> found = without_recording(run, predictor);
  if (!found) return fail(found.error());
  return Case(run, predictor, *std::move(found));
}

Case::Case(const Run& all, const simulate::Predictor& player, Unrecorded without)
    : run(all),
      predictor(player),
      now(std::move(without.now)),
      trace(all.traces[now.window.trace]),
      path(player.path_of(now)),
      steps(now.window.steps),
      recording_ns(now.now_ns - now.after_ns[1]),
      long_steps(std::move(without.long_steps)),
      places(all),
      unrecorded_(std::move(without.rewrite)),
      on_path_(player.graph().size(), 0) {
  for (const simulate::PathPiece& piece : path) {
    on_path_[piece.node] += piece.until_ns - piece.from_ns;
    path_ns += piece.until_ns - piece.from_ns;
  }
  for (std::uint32_t node = 0; node < on_path_.size(); node++) {
    if (on_path_[node] > 0) path_nodes_.push_back(node);
  }
  for (const Trace& one : timelines(run)) outermost_.push_back(outermost_operators(one));
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
            .cost_ns = cost_ns(node),
            .slice = graph.slice[node]};
  work.inside = lane.device ? of.device.op[graph.row[node]] : work.slice;
  if (work.inside != SliceId::none) work.operation = outermost(of, work.inside);
  return work;
}

Result<simulate::Prediction> Case::predict(const simulate::Rewrite& rewrite) const {
  simulate::Rewrite all = unrecorded_;
  all.nodes.insert(all.nodes.end(), rewrite.nodes.begin(), rewrite.nodes.end());
  all.no_wait = rewrite.no_wait;
  Result<simulate::Prediction> made = predictor.predict({}, all);
  if (made) {
    const auto part = [](double after, double before) { return before > 0 ? after / before : 1; };
    std::tie(made->speedup_low, made->speedup_high) =
        std::minmax({part(made->frozen, now.frozen), part(made->freed, now.freed)});
    made->now_ns = now.after_ns[1];
  }
  return made;
}

SliceId Case::outermost(const Trace& of, SliceId slice) const {
  if (slice == SliceId::none) return slice;
  return outermost_[static_cast<std::size_t>(&of - run.traces.data())][static_cast<std::size_t>(slice)];
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

bool Case::has_device() const {
  struct HasDevice {
    bool has = false;
  };
  return shared<HasDevice>([](const Case& of) {
           const auto& roles = of.predictor.graph().role;
           return HasDevice{of.trace.device.size() > 0 ||
                            std::find(roles.begin(), roles.end(), simulate::NodeRole::launch) != roles.end()};
         })
      .has;
}

void Case::put_place(const Work& work, const Code& code, Place& place) const {
  place.rank = work.trace->rank.rank;
  if (const std::string module = module_of(*this, work); !module.empty()) place.module = module;
  place.t_ns = work.start_ns;
  code.put_into(place);
}

}  // namespace stepscope::diagnose
