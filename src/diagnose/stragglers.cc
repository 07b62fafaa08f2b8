#include "diagnose/stragglers.h"

#include <algorithm>
#include <map>

#include "diagnose/operators.h"

namespace stepscope::diagnose {
namespace {

struct Own {
  Straggler of;
  double elements = 0;
  std::size_t calls = 0;
};

std::optional<Straggler> look_for_straggler(const Case& about) {
  std::map<const Trace*, Own> ranks;
  for (const simulate::StepWindow& window : about.predictor.windows()) {
    if (!window.whole_steps || window.lane == simulate::kNone) continue;
    const Trace& trace = about.run.traces[window.trace];
    Own& own = ranks[&trace];
    own.of.trace = &trace;
    for (const std::uint32_t node : about.predictor.graph().lanes[window.lane].nodes) {
      const std::int64_t start = about.predictor.graph().start_ns[node];
      if (start < window.start_ns || start >= window.end_ns) continue;
      const Work work = about.work(node);
      if (work.role == simulate::NodeRole::communicate || work.role == simulate::NodeRole::arrival) continue;
      own.of.own_ns += work.cost_ns;
      if (work.role == simulate::NodeRole::data_loader) continue;
      if (work.operation == SliceId::none) {
        own.of.code_ns += work.cost_ns;
        own.of.code.push_back(node);
      } else {
        own.of.operators.push_back(node);
      }
    }
  }
  if (ranks.size() < 2) return std::nullopt;
  for (const Operator& one : forward_operators(about)) {
    const auto of = ranks.find(one.trace);
    if (of == ranks.end() || one.step == StepId::none || one.phase == Phase::optimizer) continue;
    of->second.elements += static_cast<double>(one.inputs->elements());
    of->second.calls++;
  }
  auto most = ranks.begin();
  for (auto at = ranks.begin(); at != ranks.end(); ++at) {
    if (at->second.of.own_ns > most->second.of.own_ns) most = at;
  }
  std::vector<std::int64_t> own, code;
  std::vector<double> data;
  for (const auto& [trace, one] : ranks) {
    if (trace == most->first) continue;
    own.push_back(one.of.own_ns);
    code.push_back(one.of.code_ns);
    data.push_back(one.elements);
  }
  const auto middle = [](auto values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  Straggler out = std::move(most->second.of);
  out.others_ns = middle(own);
  out.others_code_ns = middle(code);
  if (middle(data) > 0) out.more_data = most->second.elements / middle(data);
  if (about.share(out.own_ns - out.others_ns) < kWorthSaying) return std::nullopt;
  return out;
}

}  // namespace

const std::optional<Straggler>& straggler(const Case& about) {
  return about.shared<std::optional<Straggler>>(look_for_straggler);
}

}  // namespace stepscope::diagnose
