#include "model/windows.h"

#include <algorithm>
#include <map>

namespace stepscope {
namespace {

std::int64_t start_of(const Trace& trace, std::uint32_t row) { return trace.slices.start_ns[trace.device.slice[row]]; }

DeviceTime device_time(const Trace& trace, std::int32_t device, std::vector<std::uint32_t> rows,
                       const Intervals& steps) {
  DeviceTime out{.rank = trace.rank.rank, .device = device, .rows = std::move(rows), .steps = steps};
  std::vector<Interval> all;
  std::array<std::vector<Interval>, kDeviceClasses> classes;
  all.reserve(out.rows.size());
  out.span = {start_of(trace, out.rows.front()), start_of(trace, out.rows.front())};
  for (const std::uint32_t row : out.rows) {
    const SliceId slice = trace.device.slice[row];
    const Interval when{trace.slices.start_ns[slice], trace.slices.end_ns(slice)};
    all.push_back(when);
    classes[std::min<std::size_t>(trace.device.device_class[row], kDeviceClasses - 1)].push_back(when);
    out.work_ns += when.end - when.start;
    out.span.end = std::max(out.span.end, when.end);
  }
  out.busy = make_intervals(std::move(all));
  for (std::size_t i = 0; i < kDeviceClasses; i++) out.classes[i] = make_intervals(std::move(classes[i]));
  return out;
}

}  // namespace

bool has_steps(const Trace& trace) {
  const Step* only = trace.steps.size() == 1 ? &trace.steps.front() : nullptr;
  return !trace.steps.empty() && (only == nullptr || only->number != kAbsent || only->track != TrackId::none);
}

std::vector<std::uint32_t> work_by_start(const Trace& trace) {
  std::vector<std::uint32_t> rows;
  rows.reserve(trace.device.size());
  for (std::uint32_t row = 0; row < trace.device.size(); row++) {
    if (is_device_work(trace.kind(trace.device.slice[row]))) rows.push_back(row);
  }
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return start_of(trace, a) < start_of(trace, b); };
  if (!std::is_sorted(rows.begin(), rows.end(), earlier)) std::stable_sort(rows.begin(), rows.end(), earlier);
  return rows;
}

RankTime rank_time(const Trace& trace) {
  RankTime out{.trace = &trace, .rank = trace.rank.rank};
  std::vector<Interval> steps;
  for (const Step& step : trace.steps) {
    if (step.partial) continue;
    steps.push_back({step.start_ns, std::max(step.end_ns, step.device_end_ns)});
    out.whole_steps++;
  }
  out.steps = make_intervals(std::move(steps));

  std::map<std::int32_t, std::vector<std::uint32_t>> by_device;  // a handful of devices
  for (const std::uint32_t row : work_by_start(trace)) by_device[trace.device.device[row]].push_back(row);
  if (by_device.size() == 2 && by_device.begin()->first == -1) {
    auto& nameless = by_device.begin()->second;
    auto& rows = by_device.rbegin()->second;
    const auto middle = static_cast<std::ptrdiff_t>(rows.size());
    rows.insert(rows.end(), nameless.begin(), nameless.end());
    std::inplace_merge(rows.begin(), rows.begin() + middle, rows.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return start_of(trace, a) < start_of(trace, b); });
    by_device.erase(by_device.begin());
  }
  for (auto& [device, rows] : by_device) out.devices.push_back(device_time(trace, device, std::move(rows), out.steps));
  return out;
}

std::span<const Trace> timelines(const Run& run) {
  const std::span<const Trace> all(run.traces);
  const auto graph =
      std::find_if(run.traces.begin(), run.traces.end(), [](const Trace& trace) { return trace.only_graph(); });
  const auto count = static_cast<std::size_t>(graph - run.traces.begin());
  return count == 0 ? all : all.first(count);
}

std::vector<RankTime> rank_times(const Run& run) {
  std::vector<RankTime> out;
  for (const Trace& trace : timelines(run)) out.push_back(rank_time(trace));
  return out;
}

bool headline_is_steps(const std::vector<RankTime>& ranks) {
  const bool any_device = std::any_of(ranks.begin(), ranks.end(), [](const RankTime& r) { return !r.devices.empty(); });
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [&](const RankTime& r) {
    return r.whole_steps >= 2 || (any_device && r.devices.empty());
  });
}

std::vector<Interval> step_walls(const Trace& trace) {
  std::vector<Interval> walls;
  walls.reserve(trace.steps.size());
  std::int64_t before = std::numeric_limits<std::int64_t>::min();
  for (const Step& step : trace.steps) {
    const std::int64_t start = std::max(step.start_ns, before);
    before = std::max({start, step.end_ns, step.device_end_ns});
    walls.push_back({start, before});
  }
  return walls;
}

}  // namespace stepscope
