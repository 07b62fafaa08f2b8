#include "write/step_scalars/known_steps.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "model/answer.h"
#include "model/windows.h"

namespace stepscope::write {
namespace {

// When the file was last written to; 0: unknown.
std::int64_t time_of_file(const std::string& path) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0) return 0;
  return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// What leads the run's clock, which is that of the first trace, to Unix time; nothing: no time of day is told.
std::optional<std::int64_t> unix_base(const Trace& first) {
  const std::int64_t base = first.clock_base_ns == kAbsent ? 0 : first.clock_base_ns;
  const bool told = base > kUnixFromNs || (!first.steps.empty() && first.steps.front().start_ns > kUnixFromNs);
  return told ? std::optional(base) : std::nullopt;
}

// Of a step that no trace has: memory snapshots have steps of their own, "ProfilerStep#3" or "step 3".
std::optional<std::int64_t> number_in(std::string_view name) {
  for (const std::string_view mark : {"ProfilerStep#", "step "}) {
    if (!name.starts_with(mark)) continue;
    std::int64_t number = 0;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + mark.size(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  }
  return std::nullopt;
}

}  // namespace

KnownSteps::KnownSteps(const Run& run) {
  add_history(run);  // first: its moments are in Unix time whatever the recording tells
  add_recorded(run);
  add_memory(run);
  for (const Trace& trace : run.snapshots) files_.emplace(trace.rank.rank, trace.source.path);
}

void KnownSteps::add_history(const Run& run) {
  for (const Trace& trace : run.history) {
    files_.emplace(trace.rank.rank, trace.source.path);
    for (const Step& step : trace.steps) {
      if (step.number != kAbsent)
        ended_.emplace(std::pair(trace.rank.rank, step.number), StepMoment{step.end_ns, true});
    }
  }
}

void KnownSteps::add_recorded(const Run& run) {
  const auto traces = timelines(run);
  if (traces.empty()) return;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const Trace& trace : traces) {
    for (const Step& step : trace.steps) last = std::max(last, run_time_ns(trace, step.end_ns));
  }
  const auto told = unix_base(traces.front());
  const bool any = last != std::numeric_limits<std::int64_t>::min();
  const std::int64_t base = told ? *told : any ? time_of_file(traces.front().source.path) - last : 0;
  for (const Trace& trace : traces) {
    const std::int64_t rank = trace.rank.rank;
    files_.emplace(rank, trace.source.path);
    for (const Step& step : trace.steps) {
      numbers_[{rank, step.name}].push_back(step.number);
      if (step.number == kAbsent) continue;
      ended_.emplace(std::pair(rank, step.number),
                     StepMoment{run_time_ns(trace, step.end_ns) + base, told.has_value()});
    }
  }
}

void KnownSteps::add_memory(const Run& run) {
  for (const MemoryState& state : run.memory_states) {
    files_.emplace(state.rank, state.path);
    for (const MemoryLayout& end : state.step_ends) {
      const MemoryMoment& moment = end.moment;
      if (moment.unix_ns) ended_.emplace(std::pair(state.rank, moment.step), StepMoment{*moment.unix_ns, true});
    }
  }
}

std::optional<std::int64_t> KnownSteps::number(std::int64_t rank, const std::string& name, std::size_t nth,
                                               std::size_t count) const {
  const auto found = numbers_.find({rank, name});
  if (found == numbers_.end()) return number_in(name);
  if (found->second.size() != count || found->second[nth] == kAbsent) return std::nullopt;
  return found->second[nth];
}

StepMoment KnownSteps::ended(std::int64_t rank, std::int64_t number) const {
  if (const auto found = ended_.find({rank, number}); found != ended_.end()) return found->second;
  const auto file = files_.find(rank);
  return {file == files_.end() ? 0 : time_of_file(file->second), false};
}

}  // namespace stepscope::write
