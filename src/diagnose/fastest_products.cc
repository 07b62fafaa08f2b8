#include "diagnose/fastest_products.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "costs/cost_tables.h"
#include "costs/work_calls.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

constexpr std::int64_t kTimedNs = 30'000;  // of shorter calls most is calling

double per_ns(std::optional<std::int64_t> work, std::int64_t ns) {
  return static_cast<double>(std::max<std::int64_t>(work.value_or(0), 0)) / static_cast<double>(ns);
}

}  // namespace

FastestProducts::FastestProducts(const Case& about) {
  const auto tables = costs::cost_tables(about.run);
  if (!tables) return;
  for (const Trace& trace : timelines(about.run)) {
    if (trace.device.size() > 0) continue;  // operators only launch there
    const costs::RankCosts costs(trace, *tables);
    std::vector<costs::WorkCall> calls = costs::work_calls(costs).all;
    std::erase_if(calls, [](const costs::WorkCall& call) {
      return call.family != costs::Family::matrices || call.time_ns < kTimedNs || call.backward_of_op ||
             !call.work.flop || !call.work.bytes;
    });
    struct Fastest {
      double flop = 0, bytes = 0;  // per ns
    };
    std::map<std::string_view, Fastest> fastest;  // by element type
    for (const costs::WorkCall& call : calls) {
      Fastest& best = fastest[call.type];
      best.flop = std::max(best.flop, per_ns(call.work.flop, call.time_ns));
      best.bytes = std::max(best.bytes, per_ns(call.work.bytes, call.time_ns));
    }
    for (const costs::WorkCall& call : calls) {
      const Fastest& best = fastest[call.type];
      if (best.flop <= 0 || best.bytes <= 0) continue;
      left_[&trace][call.slice] = std::max(per_ns(call.work.flop, call.time_ns) / best.flop,
                                           per_ns(call.work.bytes, call.time_ns) / best.bytes);
    }
  }
}

std::optional<double> FastestProducts::of_product(const Work& work) const {
  const auto of = left_.find(work.trace);
  if (of == left_.end()) return std::nullopt;
  for (SliceId at = work.slice; at != SliceId::none; at = work.trace->slices.parent[at]) {
    if (const auto found = of->second.find(at); found != of->second.end()) return found->second;
    if (at == work.operation) break;
  }
  return std::nullopt;
}

}  // namespace stepscope::diagnose
