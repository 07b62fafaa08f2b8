#include "simulate/step_pieces.h"

#include <algorithm>
#include <string>
#include <utility>

#include "model/normal_name.h"

namespace stepscope::simulate {
namespace {

// The slice that a piece is of, and the one that follows.
using Kind = std::pair<StringId, StringId>;

// Names differ where they hold the number of the step.
class Names {
 public:
  explicit Names(const Trace& trace) : trace_(trace) {}

  StringId of(SliceId slice) {
    if (slice == SliceId::none) return StringId::none;
    const StringId name = trace_.slices.name[slice];
    const auto [at, added] = known_.try_emplace(name, name);
    if (added) at->second = first_.try_emplace(normal_name(trace_.name(slice)), name).first->second;
    return at->second;
  }

 private:
  const Trace& trace_;
  std::map<StringId, StringId> known_;
  std::map<std::string, StringId> first_;  // of its normal name
};

// Of the longest nodes, no more than `ns`.
void take_off(std::vector<std::uint32_t> nodes, std::int64_t ns, const ReplayGraph& graph,
              std::vector<std::int64_t>& taken_ns) {
  const auto left = [&](std::uint32_t node) { return graph.costs.cost_ns[node] - taken_ns[node]; };
  std::sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) { return left(a) > left(b); });
  for (const std::uint32_t node : nodes) {
    const std::int64_t taken = std::clamp<std::int64_t>(ns, 0, std::max<std::int64_t>(left(node), 0));
    taken_ns[node] += taken;
    ns -= taken;
  }
}

}  // namespace

std::vector<StepPieces> step_pieces(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                                    const std::vector<std::int64_t>& taken_ns) {
  const Trace& trace = run.traces[window.trace];
  const Lane& lane = graph.lanes[window.lane];
  Names names(trace);
  std::map<Kind, StepPieces> kinds;
  for (std::size_t i = 0; i < lane.nodes.size(); i++) {
    const std::uint32_t node = lane.nodes[i];
    if (graph.start_ns[node] < window.start_ns || graph.start_ns[node] >= window.end_ns) continue;
    const std::size_t step = step_begun_at(trace.steps, graph.start_ns[node] - trace.clock.offset_ns);
    if (step == trace.steps.size() || trace.steps[step].track != lane.track) continue;
    const SliceId next = i + 1 < lane.nodes.size() ? graph.slice[lane.nodes[i + 1]] : SliceId::none;
    StepPiece& here = kinds[{names.of(graph.slice[node]), names.of(next)}][step];
    here.ns += graph.costs.cost_ns[node] - taken_ns[node];
    here.nodes.push_back(node);
  }
  std::vector<StepPieces> out;
  for (auto& [kind, pieces] : kinds) out.push_back(std::move(pieces));
  return out;
}

void take_off_longer(const Run& run, const ReplayGraph& graph, const StepWindow& window, const HeldUp& held,
                     std::vector<std::int64_t>& taken_ns) {
  std::vector<StepPieces> pieces = step_pieces(run, graph, window, taken_ns);
  struct Longer {
    std::int64_t ns = 0;
    const StepPiece* piece = nullptr;
  };
  std::map<std::size_t, std::vector<Longer>> longer;  // by the index of the step
  for (StepPieces& steps : pieces) {
    std::vector<std::int64_t> each;
    for (auto& [step, here] : steps) {
      if (held.may_be) {
        std::erase_if(here.nodes, [&](std::uint32_t node) { return !held.may_be(node); });
        here.ns = 0;
        for (const std::uint32_t node : here.nodes) here.ns += graph.costs.cost_ns[node] - taken_ns[node];
      }
      each.push_back(here.ns);
    }
    each.resize(std::max(each.size(), static_cast<std::size_t>(window.steps)));  // 0 where a step has none
    // What holds a thread up only ever adds.
    const auto middle = each.begin() + static_cast<std::ptrdiff_t>((each.size() - 1) / 2);
    std::nth_element(each.begin(), middle, each.end());
    if (held.others_have_it && *middle <= 0) continue;
    for (const auto& [step, here] : steps) {
      const std::int64_t more = here.ns - *middle;
      if (more > 0 && held.most_ns.contains(step)) longer[step].push_back({more, &here});
    }
  }
  for (auto& [step, own] : longer) {
    std::stable_sort(own.begin(), own.end(), [](const Longer& a, const Longer& b) { return a.ns > b.ns; });
    std::int64_t left_ns = held.most_ns.at(step);
    for (const Longer& one : own) {
      const std::int64_t taken = std::min(left_ns, one.ns);
      take_off(one.piece->nodes, taken, graph, taken_ns);
      left_ns -= taken;
    }
  }
}

std::size_t step_begun_at(const std::vector<Step>& steps, std::int64_t time_ns) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), time_ns,
                                      [](std::int64_t t, const Step& step) { return t < step.start_ns; });
  return static_cast<std::size_t>((after == steps.begin() ? steps.end() : after - 1) - steps.begin());
}

}  // namespace stepscope::simulate
