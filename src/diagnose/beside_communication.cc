#include "diagnose/beside_communication.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/intervals.h"
#include "diagnose/gathered.h"
#include "model/answer_parts.h"
#include "model/lookup.h"

namespace stepscope::diagnose {
namespace {

using simulate::NodeRole;

using Kind = std::tuple<const Trace*, StringId, StringId>;  // name and sizes of an operator

// How many times as long an operator takes beside communication.
struct Slower {
  std::map<Kind, double> of_kind;
  double usual = 1;  // of all that could be compared, by time
};

bool is_operator(const Work& work) {
  return !work.device && work.role == NodeRole::host && work.operation != SliceId::none && work.slice != SliceId::none;
}

Kind kind_of(const Work& work) {
  const Trace& trace = *work.trace;
  const std::size_t row = row_of(trace.ops.slice, work.slice);
  return {&trace, trace.slices.name[work.slice], row < trace.ops.size() ? trace.ops.input_dims[row] : StringId::none};
}

// Calls `visit(node, work, share)` for operators of hosts, `share` of whose time one of the nodes is beside on the same
// rank.
template <class Visit>
void for_each_beside(const Case& about, const std::vector<std::uint32_t>& communicating, const Visit& visit) {
  const simulate::ReplayGraph& graph = about.predictor.graph();
  std::map<const Trace*, std::vector<Interval>> times;
  for (const std::uint32_t node : communicating) {
    const Work work = about.work(node);
    if (!work.device) times[work.trace].push_back({graph.start_ns[node], graph.end_ns(node)});
  }
  for (auto& [trace, any] : times) {
    const Intervals busy = make_intervals(std::move(any));
    for (const simulate::Lane& lane : graph.lanes) {
      if (&about.run.traces[lane.trace] != trace || lane.device) continue;
      IntervalSweep sweep(busy);
      for (const std::uint32_t node : lane.nodes) {
        const Work work = about.work(node);
        const std::int64_t cost = graph.costs.cost_ns[node];
        if (!is_operator(work) || cost <= 0) continue;
        const std::int64_t shared = sweep.part_of({graph.start_ns[node], graph.end_ns(node)});
        visit(node, work, static_cast<double>(shared) / static_cast<double>(cost));
      }
    }
  }
}

Slower measure(const Case& about) {
  constexpr std::int64_t kLeastNs = 10'000;  // of an operator: less is the calling of it
  constexpr std::size_t kFewest = 3;
  constexpr double kBeside = 0.9, kAlone = 0.1, kMost = 4;
  std::vector<std::uint32_t> all;
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (about.is_work(node) && about.predictor.graph().role[node] == NodeRole::communicate) all.push_back(node);
  }
  struct Times {
    std::vector<std::int64_t> alone, beside;
  };
  std::map<Kind, Times> kinds;
  for_each_beside(about, all, [&](std::uint32_t, const Work& work, double share) {
    if (work.cost_ns < kLeastNs || (share > kAlone && share < kBeside)) return;
    Times& of = kinds[kind_of(work)];
    (share < kBeside ? of.alone : of.beside).push_back(work.cost_ns);
  });
  Slower out;
  double weighted = 0, total = 0;
  for (auto& [kind, of] : kinds) {
    if (of.alone.size() < kFewest || of.beside.size() < kFewest) continue;
    const auto time = static_cast<double>(of.beside.size()) * static_cast<double>(median(of.beside).value_or(0));
    const double slower =
        static_cast<double>(median(of.beside).value_or(0)) / static_cast<double>(median(of.alone).value_or(1));
    out.of_kind[kind] = std::clamp(slower, 1.0, kMost);
    weighted += time * out.of_kind[kind];
    total += time;
  }
  if (total > 0) out.usual = weighted / total;
  return out;
}

}  // namespace

std::vector<Relieved> relieved_of(const Case& about, const std::vector<std::uint32_t>& gone) {
  constexpr double kTelling = 1.05, kDoubt = 0.25;
  const Slower& slower = about.shared<Slower>(measure);
  std::vector<Relieved> out;
  if (slower.usual < kTelling) return out;
  for_each_beside(about, gone, [&](std::uint32_t node, const Work& work, double share) {
    const auto known = slower.of_kind.find(kind_of(work));
    const double times = known == slower.of_kind.end() ? slower.usual : known->second;
    const double lost = share * (1 - 1 / times);
    if (lost > 0) out.push_back({node, 1 - lost, 1 - (1 - kDoubt) * lost});
  });
  return out;
}

}  // namespace stepscope::diagnose
