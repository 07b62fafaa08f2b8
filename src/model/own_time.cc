#include "model/own_time.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/intervals.h"
#include "model/answer_parts.h"
#include "model/telemetry.h"

namespace stepscope {
namespace {

constexpr std::size_t kFewestSteps = 40;

bool waits_outside_backward(const Trace& trace) {
  std::vector<Interval> passes;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto slice = static_cast<SliceId>(row);
    if (trace.name(slice) == "backward") passes.push_back({trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
  }
  const Intervals backward = make_intervals(std::move(passes));
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto slice = static_cast<SliceId>(row);
    if (!trace.name(slice).starts_with("c10d::")) continue;
    const std::int64_t at = trace.slices.start_ns[slice];
    const auto after = std::upper_bound(backward.begin(), backward.end(), at,
                                        [](std::int64_t time, const Interval& pass) { return time < pass.start; });
    if (after == backward.begin() || (after - 1)->end <= at) return true;
  }
  return false;
}

// What `of` says of the other ranks, the middle one.
template <typename Of>
std::optional<std::int64_t> median_of_others(const Run& run, std::int64_t rank, Of of) {
  std::vector<std::int64_t> others;
  for (const Trace& trace : run.traces) {
    if (trace.rank.rank == rank) continue;
    if (const auto time = own_time(run, trace.rank.rank)) others.push_back(of(*time));
  }
  return median(std::move(others));
}

}  // namespace

std::optional<OwnTime> own_time(const Run& run, std::int64_t rank) {
  const Trace* history = marks_of_rank(run, rank);
  if (history == nullptr || history->steps.size() < kFewestSteps) return std::nullopt;
  for (const Trace& trace : run.traces) {
    if (trace.rank.rank == rank && waits_outside_backward(trace)) return std::nullopt;
  }
  // Without the first tenth, in which the job warms up.
  const std::size_t first = history->steps.size() / 10;
  std::map<StepId, std::int64_t> forward;
  std::int64_t outside_ns = 0;
  for (std::size_t i = first; i < history->steps.size(); i++) {
    outside_ns += history->steps[i].end_ns - history->steps[i].start_ns;
  }
  for (std::size_t row = 0; row < history->slices.size(); row++) {
    const StepId step = history->step_at(history->slices.start_ns[row]);
    if (step == StepId::none || static_cast<std::size_t>(step) < first) continue;
    const auto phase = static_cast<Phase>(history->slices.phase[row]);
    if (phase == Phase::forward) forward[step] += history->slices.dur_ns[row];
    if (phase == Phase::backward) outside_ns -= history->slices.dur_ns[row];
  }
  if (forward.size() < kFewestSteps / 2) return std::nullopt;
  std::vector<std::int64_t> times;
  for (const auto& [step, ns] : forward) times.push_back(ns);
  return OwnTime{.forward_ns = median(std::move(times)).value_or(0),
                 .outside_backward_ns = outside_ns / static_cast<std::int64_t>(history->steps.size() - first)};
}

std::optional<std::int64_t> usual_excess_ns(const Run& run, std::int64_t rank) {
  const auto own = own_time(run, rank);
  const auto others = median_of_others(run, rank, [](const OwnTime& time) { return time.outside_backward_ns; });
  if (!own || !others) return std::nullopt;
  return own->outside_backward_ns - *others;
}

std::optional<double> usual_forward_ratio(const Run& run, std::int64_t rank) {
  const auto own = own_time(run, rank);
  const auto others = median_of_others(run, rank, [](const OwnTime& time) { return time.forward_ns; });
  if (!own || !others || *others <= 0) return std::nullopt;
  return static_cast<double>(own->forward_ns) / static_cast<double>(*others);
}

}  // namespace stepscope
