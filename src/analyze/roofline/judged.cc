#include "analyze/roofline/judged.h"

namespace stepscope::analyze::roofline {

void Judged::add(const Judged& one) {
  calls += one.calls;
  time_ns += one.time_ns;
  flop = costs::add_up(flop, one.flop);
  bytes = costs::add_up(bytes, one.bytes);
  knows_flop = knows_flop && one.knows_flop;
  knows_bytes = knows_bytes && one.knows_bytes;
  knows_least = knows_least && one.knows_least;
  compute_ns += one.compute_ns;
  memory_ns += one.memory_ns;
  least_ns += one.least_ns;
  lost_ns += one.lost_ns;
}

std::string_view Judged::limit(bool device) const {
  constexpr double kTooLittleNs = 1000;  // less work than a kernel takes to begin and end
  if (!knows_least) return "";
  if (device && least_ns < kTooLittleNs * static_cast<double>(calls)) return "latency";
  if (compute_ns >= memory_ns) return "compute";
  return too_fast() ? "cache" : "memory";
}

Judged judge(const costs::WorkCall& call, std::int64_t time_ns, const costs::DevicePeaks* peaks) {
  Judged out{.calls = 1,
             .time_ns = time_ns,
             .flop = call.work.flop.value_or(0),
             .bytes = call.work.bytes.value_or(0),
             .knows_flop = call.work.flop.has_value(),
             .knows_bytes = call.work.bytes.has_value()};
  const auto peak = peaks == nullptr ? std::nullopt : peaks->flop_per_s(call.type);
  const bool computes = out.flop > 0;
  out.knows_least = peaks != nullptr && (computes ? peak.has_value() : out.knows_bytes);
  if (!out.knows_least) return out;
  if (computes) out.compute_ns = static_cast<double>(out.flop) / *peak * 1e9;
  out.memory_ns = static_cast<double>(out.bytes) / peaks->gb_per_s;
  out.least_ns = std::max(out.compute_ns, out.memory_ns);
  out.lost_ns = std::max(0.0, static_cast<double>(time_ns) - out.least_ns);
  return out;
}

Rank::Rank(const Trace& trace, const costs::CostTables& tables) : costs(trace, tables), work(work_calls(costs)) {
  for (const costs::WorkCall& call : work.all) judged.push_back(judge(call, call.time_ns, peaks()));
}

}  // namespace stepscope::analyze::roofline
