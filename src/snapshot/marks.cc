#include "snapshot/marks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>

#include "derive/phase_names.h"

namespace stepscope::snapshot {
namespace {

constexpr std::string_view kProfilerStep = "ProfilerStep#", kOptimizerStep = "Optimizer.step#";

bool is_of(const SnapshotAnnotation& one, const SnapshotDevice& device) {
  return one.time_us != kNotRecorded && (one.device == device.number || one.device == kNotRecorded);
}

std::uint32_t events_before(std::span<const std::int64_t> times, std::int64_t time_us, bool with_same) {
  const auto at = with_same ? std::upper_bound(times.begin(), times.end(), time_us)
                            : std::lower_bound(times.begin(), times.end(), time_us);
  return static_cast<std::uint32_t>(at - times.begin());
}

// Of one name the END that comes first belongs to the START that came last.
std::vector<MarkedRange> paired(const CudaSnapshot& snapshot, const SnapshotDevice& device) {
  std::vector<SnapshotAnnotation> sorted;
  for (const SnapshotAnnotation& one : snapshot.annotations.span()) {
    if (is_of(one, device)) sorted.push_back(one);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.time_us < b.time_us; });
  std::map<StringId, std::vector<std::size_t>> open;
  std::vector<MarkedRange> marks;
  for (const SnapshotAnnotation& one : sorted) {
    std::vector<std::size_t>& of_name = open[one.name];
    if (snapshot.strings[one.stage] == "START") {
      of_name.push_back(marks.size());
      marks.push_back({.name = one.name, .begin_us = one.time_us, .end_us = std::numeric_limits<std::int64_t>::max()});
    } else if (!of_name.empty()) {
      marks[of_name.back()].end_us = one.time_us;
      of_name.pop_back();
    } else {  // it was open when the record began
      marks.push_back(
          {.name = one.name, .begin_us = std::numeric_limits<std::int64_t>::min() + 1, .end_us = one.time_us});
    }
  }
  return marks;
}

void add_steps(const CudaSnapshot& snapshot, SnapshotDevice& device, std::string_view prefix, bool from_end_to_end) {
  std::uint32_t begin = 0;
  for (const MarkedRange& mark : device.marks) {
    const std::string_view name = snapshot.strings[mark.name];
    if (!name.starts_with(prefix)) continue;
    const std::uint32_t end = std::min(mark.end, device.events.count);
    if (end <= begin && from_end_to_end) continue;
    device.steps.push_back({from_end_to_end ? "step " + std::to_string(device.steps.size()) : std::string(name),
                            from_end_to_end ? begin : mark.begin, end});
    begin = end;
  }
}

// Where a job has several optimizers, the round ends with the last of them: the name whose last END is last.
std::string last_optimizer(const CudaSnapshot& snapshot, const SnapshotDevice& device) {
  const MarkedRange* last = nullptr;
  for (const MarkedRange& mark : device.marks) {
    if (!snapshot.strings[mark.name].starts_with(kOptimizerStep)) continue;
    if (last == nullptr || mark.end_us >= last->end_us) last = &mark;
  }
  return last == nullptr ? std::string() : std::string(snapshot.strings[last->name]);
}

}  // namespace

void add_marks(const CudaSnapshot& snapshot, SnapshotDevice& device) {
  const auto times = snapshot.events.time_us.span().subspan(device.events.first, device.events.count);
  device.marks = paired(snapshot, device);
  std::map<StringId, Phase> phases;
  for (MarkedRange& mark : device.marks) {
    mark.begin = events_before(times, mark.begin_us, false);
    mark.end = std::max(mark.begin, events_before(times, mark.end_us, true));
    const auto [known, is_new] = phases.try_emplace(mark.name, Phase::other);
    if (is_new) {
      known->second =
          derive::phase_of_name(snapshot.strings[mark.name], SliceKind::user_annotation).value_or(Phase::other);
    }
    mark.phase = known->second;
  }
  std::stable_sort(device.marks.begin(), device.marks.end(),
                   [](const MarkedRange& a, const MarkedRange& b) { return a.begin_us < b.begin_us; });
  add_steps(snapshot, device, kProfilerStep, false);
  if (!device.steps.empty()) {
    device.step_source = "ProfilerStep marks";
  } else if (const std::string name = last_optimizer(snapshot, device); !name.empty()) {
    add_steps(snapshot, device, name, true);
    device.step_source = "a step ends where " + name + " does";
  }
}

bool is_step_mark(const CudaSnapshot& snapshot, const MarkedRange& mark) {
  return snapshot.strings[mark.name].starts_with(kProfilerStep);
}

std::vector<std::uint32_t> innermost_marks(const SnapshotDevice& device,
                                           const std::function<bool(const MarkedRange&)>& wanted) {
  std::vector<std::uint32_t> inner(device.events.count, kNoEntry);
  if (device.marks.empty()) return inner;
  struct Open {
    std::uint32_t mark, end;
  };
  constexpr std::size_t kMostOpen = 64;  // more are not looked at: a file may open a million and close none
  std::vector<Open> open;
  std::size_t next = 0;
  for (std::uint32_t event = 0; event < device.events.count; event++) {
    for (; next < device.marks.size() && device.marks[next].begin <= event; next++) {
      if (device.marks[next].end <= event || !wanted(device.marks[next])) continue;
      if (open.size() == kMostOpen) open.erase(open.begin());
      open.push_back({static_cast<std::uint32_t>(next), device.marks[next].end});
    }
    // Ranges of several threads overlap, so those that are over may lie beneath one that is not.
    std::erase_if(open, [&](const Open& one) { return one.end <= event; });
    if (!open.empty()) inner[event] = open.back().mark;
  }
  return inner;
}

}  // namespace stepscope::snapshot
