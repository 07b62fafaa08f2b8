#include "simulate/core_waits.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "model/normal_name.h"
#include "model/settings.h"

namespace stepscope::simulate {
namespace {

// A piece of a thread as other steps have it too: the slice that it is of, and the one that follows.
using Piece = std::pair<StringId, StringId>;

struct Pieces {
  std::int64_t ns = 0;
  std::vector<std::uint32_t> nodes;
};

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

// The last step that had begun, whose waits are counted until the next one begins; the number of all: there is none.
std::size_t step_before(const Trace& trace, std::int64_t time_ns) {
  const auto after = std::upper_bound(trace.steps.begin(), trace.steps.end(), time_ns,
                                      [](std::int64_t t, const Step& step) { return t < step.start_ns; });
  return static_cast<std::size_t>((after == trace.steps.begin() ? trace.steps.end() : after - 1) - trace.steps.begin());
}

// Of the longest nodes, no more than `ns`.
void take_off(std::vector<std::uint32_t> nodes, std::int64_t ns, const ReplayGraph& graph,
              std::vector<std::int64_t>& node_ns) {
  const auto left = [&](std::uint32_t node) { return graph.costs.cost_ns[node] - node_ns[node]; };
  std::sort(nodes.begin(), nodes.end(), [&](std::uint32_t a, std::uint32_t b) { return left(a) > left(b); });
  for (const std::uint32_t node : nodes) {
    const std::int64_t taken = std::clamp<std::int64_t>(ns, 0, left(node));
    node_ns[node] += taken;
    ns -= taken;
  }
}

}  // namespace

void take_off_core_waits(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                         std::vector<std::int64_t>& node_ns) {
  const Trace& trace = run.traces[window.trace];
  const std::vector<CoreWait> waits = core_waits(trace);
  const Lane& lane = graph.lanes[window.lane];
  if (!window.whole_steps || window.steps < 2 || waits.empty()) return;
  node_ns.resize(graph.size());
  Names names(trace);
  std::map<Piece, std::map<std::size_t, Pieces>> pieces;
  for (std::size_t i = 0; i < lane.nodes.size(); i++) {
    const std::uint32_t node = lane.nodes[i];
    if (graph.start_ns[node] < window.start_ns || graph.start_ns[node] >= window.end_ns) continue;
    const std::size_t step = step_before(trace, graph.start_ns[node] - trace.clock.offset_ns);
    if (step == trace.steps.size() || trace.steps[step].track != lane.track) continue;
    const SliceId next = i + 1 < lane.nodes.size() ? graph.slice[lane.nodes[i + 1]] : SliceId::none;
    Pieces& here = pieces[{names.of(graph.slice[node]), names.of(next)}][step];
    here.ns += graph.costs.cost_ns[node] - node_ns[node];
    here.nodes.push_back(node);
  }
  struct Longer {
    std::int64_t ns = 0;
    const Pieces* pieces = nullptr;
  };
  std::map<std::int64_t, std::vector<Longer>> longer;  // by the number of the step: than the same piece in others
  for (const auto& [piece, steps] : pieces) {
    std::vector<std::int64_t> each;
    for (const auto& [step, here] : steps) each.push_back(here.ns);
    each.resize(std::max(each.size(), static_cast<std::size_t>(window.steps)));  // 0 where a step has none
    // Waits only ever add.
    const auto middle = each.begin() + static_cast<std::ptrdiff_t>((each.size() - 1) / 2);
    std::nth_element(each.begin(), middle, each.end());
    for (const auto& [step, here] : steps) {
      const std::int64_t more = here.ns - *middle;
      if (more > 0) longer[trace.steps[step].number].push_back({more, &here});
    }
  }
  for (const CoreWait& wait : waits) {
    std::vector<Longer>& own = longer[wait.step];
    std::sort(own.begin(), own.end(), [](const Longer& a, const Longer& b) { return a.ns > b.ns; });
    std::int64_t left_ns = wait.ns;
    for (const Longer& one : own) {
      const std::int64_t taken = std::min(left_ns, one.ns);
      take_off(one.pieces->nodes, taken, graph, node_ns);
      left_ns -= taken;
    }
    own.clear();
  }
}

}  // namespace stepscope::simulate
