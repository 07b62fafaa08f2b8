#include "model/match_times.h"

#include <algorithm>

namespace stepscope {

bool synchronizes(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::barrier: return true;
    default: return false;
  }
}

bool is_complete(const Run& run, std::size_t match) {
  const Match& row = run.matches.rows[match];
  const CommLane& lane = run.matches.lanes[row.lane];
  const std::int64_t size = row.kind == CollectiveKind::send ? 2 : lane.size;
  return size > 0 && static_cast<std::int64_t>(run.matches.of(match).size()) >= size;
}

MatchTime match_time(const Run& run, std::size_t match) {
  MatchTime time;
  std::int64_t shortest = INT64_MAX, last_end = INT64_MIN, sum = 0;
  time.last_arrival_ns = INT64_MIN;
  bool clocks = true;
  const auto members = run.matches.of(match);
  for (const MatchMember& member : members) {
    const Trace& trace = run.traces[member.trace];
    const std::int64_t duration = member.end_ns - member.start_ns;
    shortest = std::min(shortest, duration);
    sum += duration;
    time.last_arrival_ns = std::max(time.last_arrival_ns, run_time_ns(trace, member.start_ns));
    last_end = std::max(last_end, run_time_ns(trace, member.end_ns));
    clocks = clocks && clock_is_fitted(trace);
  }
  const bool together = synchronizes(run.matches.rows[match].kind);
  time.transfer_ns = together || !clocks ? shortest : std::max<std::int64_t>(last_end - time.last_arrival_ns, 0);
  const auto count = static_cast<std::int64_t>(members.size());
  time.wait_ns = std::max<std::int64_t>(sum - count * time.transfer_ns, 0);
  return time;
}

bool clock_is_fitted(const Trace& trace) {
  const ClockSource source = trace.clock.source;
  return source == ClockSource::reference || source == ClockSource::collectives || source == ClockSource::same_host;
}

std::optional<std::int64_t> clock_bound_ns(const Run& run) {
  std::int64_t bound = 0;
  for (const Trace& trace : run.traces) {
    if (!clock_is_fitted(trace)) return std::nullopt;
    bound = std::max(bound, trace.clock.bound_ns);
  }
  return bound;
}

}  // namespace stepscope
