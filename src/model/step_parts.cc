#include "model/step_parts.h"

#include <algorithm>
#include <utility>

#include "model/host_names.h"

namespace stepscope {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, kStepParts> kPartTexts{{
    {"kernel", "a compute or unclassified kernel ran"},
    {"copy", "a memory copy ran and no kernel"},
    {"set", "a memory fill ran and no kernel or copy"},
    {"communication", "communication ran and nothing above hid it"},
    {"runtime", "the device did nothing and a thread was inside a runtime call (launch, synchronize, allocate …)"},
    {"dataloader", "none of the above and a thread waited for the data loader"},
    {"cpu_op", "none of the above and a thread ran an operator"},
    {"other", "none of the above: Python code or time that nothing was recorded for"},
}};

std::size_t index(StepPart part) { return static_cast<std::size_t>(part); }

// For make_intervals: most slices come by start, so that one touches the last and only makes it longer. Without it the
// lists hold as many intervals as there are operators.
void append_merging(std::vector<Interval>& any, Interval when) {
  if (!any.empty() && any.back().start <= when.start && when.start <= any.back().end) {
    any.back().end = std::max(any.back().end, when.end);
  } else {
    any.push_back(when);
  }
}

// Decided once per name: -1 nothing, else the part that the name alone decides.
std::vector<std::int8_t> parts_by_name(const Trace& trace) {
  std::vector<std::int8_t> out(trace.strings.size(), -1);
  for (std::uint32_t i = 0; i < out.size(); i++) {
    const std::string_view name = trace.strings[StringId{i}];
    if (is_data_loader(name)) {
      out[i] = static_cast<std::int8_t>(StepPart::dataloader);
    } else if (is_host_communication(name)) {
      out[i] = static_cast<std::int8_t>(StepPart::communication);
    }
  }
  return out;
}

// Host slices by part, as sets. Slices inside one of the same part add nothing and are left out early.
std::array<Intervals, kStepParts> host_parts(const Trace& trace) {
  const std::vector<std::int8_t> named = parts_by_name(trace);
  const auto part_of = [&](SliceId id) -> int {
    const SliceKind kind = trace.kind(id);
    const std::int8_t by_name =
        trace.slices.name[id] == StringId::none ? -1 : named[static_cast<std::size_t>(trace.slices.name[id])];
    if (kind == SliceKind::runtime) return static_cast<int>(StepPart::runtime);
    if (kind != SliceKind::cpu_op && kind != SliceKind::user_annotation) return -1;
    if (by_name >= 0) return by_name;
    return kind == SliceKind::cpu_op ? static_cast<int>(StepPart::cpu_op) : -1;
  };
  std::array<std::vector<Interval>, kStepParts> found;
  for (const SliceId id : trace.by_track) {
    const int part = part_of(id);
    if (part < 0) continue;
    const SliceId above = trace.slices.parent[id];
    if (above != SliceId::none && part_of(above) == part) continue;
    append_merging(found[static_cast<std::size_t>(part)], {trace.slices.start_ns[id], trace.slices.end_ns(id)});
  }
  std::array<Intervals, kStepParts> out;
  for (std::size_t i = 0; i < kStepParts; i++) out[i] = make_intervals(std::move(found[i]));
  return out;
}

// All parts as sets that share no instant; `other` is left empty, it is what remains.
std::array<Intervals, kStepParts> exclusive_parts(const Trace& trace, const RankTime& time) {
  std::array<Intervals, kStepParts> parts = host_parts(trace);
  const auto put = [&](StepPart part, const Intervals& more) { parts[index(part)] = unite(parts[index(part)], more); };
  for (const DeviceTime& device : time.devices) {
    put(StepPart::kernel, device.of(DeviceClass::compute));
    put(StepPart::kernel, device.of(DeviceClass::unclassified));
    put(StepPart::copy, device.of(DeviceClass::memory_copy));
    put(StepPart::set, device.of(DeviceClass::memory_set));
    put(StepPart::communication, device.of(DeviceClass::communication));
  }
  Intervals taken;
  for (Intervals& part : parts) {
    Intervals alone = subtract(part, taken);
    taken = unite(taken, alone);
    part = std::move(alone);
  }
  return parts;
}

// Most specific first: an optimizer step inside a backward hook is optimizer, a collective inside backward is
// communication.
constexpr std::array kPhaseOrder{Phase::checkpoint, Phase::communication, Phase::zero_grad, Phase::optimizer,
                                 Phase::evaluation, Phase::backward,      Phase::forward,   Phase::dataloader};

std::array<Intervals, kPhases> device_phases(const Trace& trace, const RankTime& time) {
  std::array<std::vector<Interval>, kPhases> found;
  for (const DeviceTime& device : time.devices) {
    for (const std::uint32_t row : device.rows) {
      const std::size_t phase = std::min<std::size_t>(trace.device.phase[row], kPhases - 1);
      const SliceId slice = trace.device.slice[row];
      append_merging(found[phase], {trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
    }
  }
  std::array<Intervals, kPhases> out;
  for (std::size_t i = 0; i < kPhases; i++) out[i] = make_intervals(std::move(found[i]));
  return out;
}

void add_parts(const std::array<Intervals, kStepParts>& parts, const std::vector<Interval>& walls,
               std::vector<StepTimes>& out) {
  for (std::size_t part = 0; part < index(StepPart::other); part++) {
    const auto lengths = lengths_in(parts[part], walls);
    for (std::size_t i = 0; i < walls.size(); i++) {
      out[i].parts[part] = lengths[i];
      out[i].parts[index(StepPart::other)] -= lengths[i];
    }
  }
}

void add_phases(const std::array<Intervals, kPhases>& phases, const std::vector<Interval>& walls,
                PhaseTimes StepTimes::*times, std::vector<StepTimes>& out) {
  for (std::size_t phase = 0; phase < kPhases; phase++) {
    const auto lengths = lengths_in(phases[phase], walls);
    for (std::size_t i = 0; i < walls.size(); i++) (out[i].*times)[phase] = lengths[i];
  }
}

}  // namespace

std::string_view to_string(StepPart part) { return kPartTexts[index(part)].first; }
std::string_view meaning_of(StepPart part) { return kPartTexts[index(part)].second; }

std::array<Intervals, kPhases> host_phases(const Trace& trace) {
  std::array<std::vector<Interval>, kPhases> found;
  for (std::size_t track = 0; track < trace.tracks.size(); track++) {
    if (trace.tracks[track].device) continue;
    for (std::uint32_t i = trace.track_begin[track]; i < trace.track_begin[track + 1]; i++) {
      const SliceId id = trace.by_track[i];
      const std::uint8_t phase = trace.slices.phase[id];
      if (phase == 0 || phase >= kPhases) continue;
      const SliceId above = trace.slices.parent[id];
      if (above != SliceId::none && trace.slices.phase[above] == phase) continue;
      append_merging(found[phase], {trace.slices.start_ns[id], trace.slices.end_ns(id)});
    }
  }
  std::array<Intervals, kPhases> out;
  Intervals taken;
  for (const Phase phase : kPhaseOrder) {
    const auto at = static_cast<std::size_t>(phase);
    out[at] = subtract(make_intervals(std::move(found[at])), taken);
    taken = unite(taken, out[at]);
  }
  return out;
}

std::vector<StepTimes> step_times(const Trace& trace, const RankTime& time) {
  const std::vector<Interval> walls = step_walls(trace);
  std::vector<StepTimes> out(walls.size());
  for (std::size_t i = 0; i < walls.size(); i++) {
    out[i].step = i;
    out[i].wall = walls[i];
    out[i].parts[index(StepPart::other)] = walls[i].end - walls[i].start;
  }
  add_parts(exclusive_parts(trace, time), walls, out);
  // One set of phases at a time: each can hold as many intervals as there are operators.
  add_phases(host_phases(trace), walls, &StepTimes::host_phases, out);
  add_phases(device_phases(trace, time), walls, &StepTimes::device_phases, out);
  for (StepTimes& step : out) {  // host time in no phase: what is left of the wall
    std::int64_t rest = step.wall.end - step.wall.start;
    for (std::size_t phase = 1; phase < kPhases; phase++) rest -= step.host_phases[phase];
    step.host_phases[0] = rest;
  }
  return out;
}

std::vector<std::int64_t> whole_walls(const Trace& trace, const std::vector<StepTimes>& steps) {
  std::vector<std::int64_t> walls;
  for (const StepTimes& step : steps) {
    if (!trace.steps[step.step].partial) walls.push_back(step.wall.end - step.wall.start);
  }
  std::sort(walls.begin(), walls.end());
  return walls;
}

Value step_spread(const std::vector<std::int64_t>& sorted_walls) {
  if (sorted_walls.size() < 2) return {};
  const double middle = *quantile(sorted_walls, 0.5);
  if (middle <= 0) return {};
  return (*quantile(sorted_walls, 0.9) - *quantile(sorted_walls, 0.1)) / 2 / middle;
}

}  // namespace stepscope
