#include "model/lateness.h"

#include <algorithm>
#include <map>

#include "model/match_times.h"

namespace stepscope {
namespace {

std::int64_t step_of(const Trace& trace, const MatchMember& member) {
  StepId step = member.device_row == MatchMember::kNone ? StepId::none : trace.device.step[member.device_row];
  if (step == StepId::none) step = trace.step_at(member.start_ns);
  return step == StepId::none ? kOutsideSteps : step_number(trace, static_cast<std::size_t>(step));
}

void mark_worst(std::vector<std::map<std::int64_t, std::int64_t>>& by_step, std::vector<RankLateness>& out) {
  std::map<std::int64_t, std::int64_t> worst;
  for (const auto& steps : by_step) {
    for (const auto& [step, ns] : steps) worst[step] = std::max(worst[step], ns);
  }
  for (std::size_t trace = 0; trace < out.size(); trace++) {
    for (const auto& [step, ns] : by_step[trace]) {
      out[trace].steps.push_back({step, ns, ns > 0 && ns == worst[step]});
    }
  }
}

}  // namespace

std::int64_t step_number(const Trace& trace, std::size_t step) {
  const std::int64_t number = trace.steps[step].number;
  return number == kAbsent ? static_cast<std::int64_t>(step) : number;
}

std::vector<RankLateness> lateness(const Run& run) {
  const auto bound = clock_bound_ns(run);
  if (!bound || run.traces.size() < 2) return {};
  std::vector<RankLateness> out(run.traces.size());
  std::vector<std::map<std::int64_t, std::int64_t>> by_step(run.traces.size());
  std::vector<std::int64_t> arrivals, sorted;
  bool any = false;
  for (std::size_t i = 0; i < run.matches.size(); i++) {
    const auto members = run.matches.of(i);
    if (members.size() < 2 || !synchronizes(run.matches.rows[i].kind)) continue;
    any = true;
    arrivals.clear();
    for (const MatchMember& member : members)
      arrivals.push_back(run_time_ns(run.traces[member.trace], member.start_ns));
    sorted = arrivals;
    std::sort(sorted.begin(), sorted.end());
    const std::int64_t median = sorted[(sorted.size() - 1) / 2];
    for (std::size_t m = 0; m < members.size(); m++) {
      const Trace& trace = run.traces[members[m].trace];
      RankLateness& rank = out[members[m].trace];
      const std::int64_t late = arrivals[m] - median;
      const bool counts = late > *bound;
      std::int64_t& step = by_step[members[m].trace][step_of(trace, members[m])];
      rank.collectives++;
      if (!counts) continue;
      rank.total_ns += late;
      rank.late_collectives++;
      rank.last_collectives += arrivals[m] == sorted.back() ? 1 : 0;
      if (rank.first_late_ns == kAbsent) rank.first_late_ns = arrivals[m];
      step += late;
    }
  }
  if (!any) return {};
  mark_worst(by_step, out);
  return out;
}

}  // namespace stepscope
