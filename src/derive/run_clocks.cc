// The first trace is the reference. Each other one is fitted to it where both took part in the same collectives, else
// to one that is fitted already (ranks of a pipeline may share no group with rank 0), else by Unix time, else by its
// first event. Processes of one host read the same clock: that is better than the ends of collectives that threads of
// the host make, which end when the scheduler lets them.
#include "derive/run_clocks.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/workers.h"
#include "derive/clock_fit.h"
#include "model/answer.h"
#include "model/lookup.h"
#include "model/match_times.h"

namespace stepscope::derive {
namespace {

constexpr std::size_t kMostTries = 8;
// Two processes that handed a flag to and fro 200 times, recorded by torch 2.13: what each saw after the other puts
// their clocks within 3.5 us of each other.
constexpr std::int64_t kHostClockNs = 5'000;
// Two hosts have one name where few collectives of one rank end within this of one like it on the other.
constexpr std::int64_t kSchedulerNs = 50'000'000;

// Ends of these come together on all ranks; a broadcast may be over at its root long before.
bool ends_together(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::barrier:
    case CollectiveKind::other: return true;
    default: return false;
  }
}

std::vector<Tick> ticks_of(const Trace& trace, const CommCalls& calls, bool all_kinds) {
  std::vector<Tick> ticks;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::uint64_t> seen;  // a number may serve several coalesced calls
  for (const CommCall& call : calls.calls) {
    if (!call.timed || (!all_kinds && !ends_together(call.kind))) continue;
    std::uint64_t key = (call.token ^ call.lane) * 0x9e3779b97f4a7c15u;
    const bool numbered = call.sequence != kAbsent;
    if (numbered) {
      const std::uint64_t nth = seen[{key, call.sequence}]++;
      key = (key ^ static_cast<std::uint64_t>(call.sequence) ^ nth << 40) * 0x9e3779b97f4a7c15u + 1;
    }
    ticks.push_back({run_time_ns(trace, call.member.end_ns), key, numbered});
  }
  if (!all_kinds && ticks.size() < 8 && ticks.size() < calls.calls.size()) return ticks_of(trace, calls, true);
  return ticks;
}

std::optional<std::int64_t> unix_base(const Trace& trace) {
  const std::int64_t base = trace.clock_base_ns == kAbsent ? 0 : trace.clock_base_ns;
  if (trace.slices.size() == 0) return std::nullopt;
  const std::int64_t first = trace.slices.start_ns[0];
  return base > kUnixFromNs || first > kUnixFromNs ? std::optional(base) : std::nullopt;
}

std::optional<std::int64_t> offset_by_wall(const Trace& reference, const Trace& trace) {
  const auto ours = unix_base(trace), theirs = unix_base(reference);
  if (!ours || !theirs) return std::nullopt;
  return *ours - *theirs + reference.clock.offset_ns;
}

bool made_by_threads(const CommCalls& calls) {
  return std::all_of(calls.calls.begin(), calls.calls.end(), [](const CommCall& call) { return call.concurrent; });
}

// Do the collectives of both end together if both read one clock? Without any there is nothing against it.
bool end_together(std::span<const Tick> reference, std::span<const Tick> ticks, std::int64_t ahead_ns) {
  std::map<std::uint64_t, std::vector<std::int64_t>> times;
  for (const Tick& tick : reference) times[tick.key].push_back(tick.time_ns);
  for (auto& [key, of_key] : times) std::sort(of_key.begin(), of_key.end());
  std::size_t together = 0, shared = 0;
  for (const Tick& tick : ticks) {
    const auto found = times.find(tick.key);
    if (found == times.end()) continue;
    const std::int64_t time = tick.time_ns + ahead_ns;
    const auto after = std::lower_bound(found->second.begin(), found->second.end(), time - kSchedulerNs);
    shared++;
    together += after != found->second.end() && *after <= time + kSchedulerNs ? 1 : 0;
  }
  return 2 * together >= shared;
}

// By the clock of the host, where an earlier trace is of the same.
void share_host_clock(std::vector<Trace>& traces, std::size_t at, std::span<const std::vector<Tick>> ticks) {
  Trace& trace = traces[at];
  const std::string_view host = machine_of(trace);
  for (std::size_t to = 0; to < at && !host.empty(); to++) {
    const Trace& other = traces[to];
    const auto ours = unix_base(trace), theirs = unix_base(other);
    if (machine_of(other) != host || !clock_is_fitted(other) || !ours || !theirs) continue;
    const std::int64_t ahead = *ours - *theirs;
    if (!end_together(ticks[to], ticks[at], ahead)) continue;
    trace.clock = {.source = ClockSource::same_host,  // the same clock, so it drifts as that of the other
                   .offset_ns = other.clock.offset_ns + ahead,
                   .pivot_ns = other.clock.pivot_ns - ahead,
                   .drift = other.clock.drift,
                   .bound_ns = std::max(other.clock.bound_ns, kHostClockNs)};
    return;
  }
}

// Steps of one number begin at about the same time.
std::optional<std::int64_t> offset_by_steps(const Trace& reference, const Trace& trace) {
  std::map<std::int64_t, std::int64_t> starts;
  for (const Step& step : reference.steps) {
    if (step.number != kAbsent) starts.emplace(step.number, run_time_ns(reference, step.start_ns));
  }
  std::vector<std::int64_t> ahead;
  for (const Step& step : trace.steps) {
    const auto found = step.number == kAbsent ? starts.end() : starts.find(step.number);
    if (found != starts.end()) ahead.push_back(found->second - step.start_ns);
  }
  if (ahead.empty()) return std::nullopt;
  const auto middle = ahead.begin() + static_cast<std::ptrdiff_t>(ahead.size() / 2);
  std::nth_element(ahead.begin(), middle, ahead.end());
  return *middle;
}

std::int64_t first_time(const Trace& trace) {
  const auto& starts = trace.slices.start_ns;
  return starts.empty() ? 0 : *std::min_element(starts.begin(), starts.end());
}

bool fit(const Trace& reference, std::span<const Tick> reference_ticks, Trace& trace, std::span<const Tick> ticks) {
  auto expected = offset_by_steps(reference, trace);
  if (!expected) expected = offset_by_wall(reference, trace);
  const auto clock = fit_clock(reference_ticks, ticks, expected);
  if (!clock) return false;
  trace.clock = *clock;
  if (reference.clock.bound_ns > 0) trace.clock.bound_ns += reference.clock.bound_ns;
  return true;
}

void fall_back(const Trace& reference, Trace& trace) {
  trace.clock = {};
  if (const auto offset = offset_by_wall(reference, trace)) {
    trace.clock.source = ClockSource::wall;
    trace.clock.offset_ns = *offset;
  } else {
    trace.clock.source = ClockSource::start;
    trace.clock.offset_ns = first_time(reference) - first_time(trace);
  }
}

}  // namespace

void set_clocks(Run& run, std::span<const CommCalls> calls, unsigned threads) {
  std::vector<Trace>& traces = run.traces;
  for (Trace& trace : traces) trace.clock = {};
  if (traces.empty()) return;
  traces[0].clock.source = ClockSource::reference;
  std::vector<std::vector<Tick>> ticks(traces.size());
  for_each_index(traces.size(), threads, [&](std::size_t i) { ticks[i] = ticks_of(traces[i], calls[i], false); });
  std::vector<char> fitted(traces.size());
  fitted[0] = 1;
  for_each_index(traces.size() - 1, threads,
                 [&](std::size_t i) { fitted[i + 1] = fit(traces[0], ticks[0], traces[i + 1], ticks[i + 1]) ? 1 : 0; });
  std::vector<std::vector<Tick>> on_run_clock(traces.size());
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 1; i < traces.size(); i++) {
      std::size_t tries = 0;
      for (std::size_t to = 1; to < traces.size() && fitted[i] == 0 && tries < kMostTries; to++) {
        if (fitted[to] == 0) continue;
        tries++;
        if (on_run_clock[to].empty()) on_run_clock[to] = ticks_of(traces[to], calls[to], false);
        if (!fit(traces[to], on_run_clock[to], traces[i], ticks[i])) continue;
        fitted[i] = 1;
        more = true;
      }
    }
  }
  for (std::size_t i = 1; i < traces.size(); i++) {
    if (fitted[i] == 0) fall_back(traces[0], traces[i]);
    if (fitted[i] == 0 || made_by_threads(calls[i])) share_host_clock(traces, i, ticks);
  }
}

}  // namespace stepscope::derive
