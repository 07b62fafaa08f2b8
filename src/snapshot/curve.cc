#include "snapshot/curve.h"

#include <algorithm>
#include <array>
#include <utility>

#include "snapshot/byte_sums.h"

namespace stepscope::snapshot {
namespace {

// Adds up what each moment changes.
void add_up(std::vector<std::int64_t>& changes) {
  for (std::size_t i = 1; i < changes.size(); i++) changes[i] = plus(changes[i], changes[i - 1]);
}

void change(std::vector<std::int64_t>& changes, std::uint32_t begin, std::uint32_t end, std::int64_t bytes) {
  changes[begin] = plus(changes[begin], bytes);
  if (end != kNever) changes[end] = plus(changes[end], -bytes);
}

}  // namespace

std::vector<std::int64_t> held_by_moment(const AllocatorHistory& history, const SnapshotDevice& device) {
  std::vector<std::int64_t> held(device.events.count + std::size_t{1});
  const Allocations& rows = history.allocations;
  for (std::uint32_t i = device.allocations.first; i < device.allocations.first + device.allocations.count; i++) {
    if (!history.is_static(i)) change(held, rows.begin[i], rows.end[i], rows.bytes[i]);
  }
  add_up(held);
  return held;
}

std::vector<std::int64_t> reserved_by_moment(const AllocatorHistory& history, const SnapshotDevice& device) {
  if (device.ranges.count == 0) return {};
  std::vector<std::int64_t> reserved(device.events.count + std::size_t{1});
  const HeldRanges& rows = history.ranges;
  for (std::uint32_t i = device.ranges.first; i < device.ranges.first + device.ranges.count; i++) {
    change(reserved, rows.begin[i], rows.end[i], rows.bytes[i]);
  }
  add_up(reserved);
  return reserved;
}

std::int64_t time_of(const CudaSnapshot& snapshot, const SnapshotDevice& device, std::uint32_t moment) {
  if (device.events.count == 0) return kNotRecorded;
  const std::uint32_t event = device.events.first + std::min(std::max(moment, 1u), device.events.count) - 1;
  const std::int64_t us = snapshot.events.time_us[event];
  std::int64_t ns = 0;
  return us == kNotRecorded || __builtin_mul_overflow(us, std::int64_t{1000}, &ns) ? kNotRecorded : ns;
}

std::uint32_t moment_at(const CudaSnapshot& snapshot, const SnapshotDevice& device, std::int64_t time_us) {
  if (device.events.count == 0) return 0;
  const auto times = snapshot.events.time_us.span().subspan(device.events.first, device.events.count);
  const auto after = std::upper_bound(times.begin(), times.end(), time_us);
  return static_cast<std::uint32_t>(after - times.begin());
}

Series thinned_by_event(std::string name, const CudaSnapshot& snapshot, const SnapshotDevice& device,
                        const std::vector<std::int64_t>& by_moment, std::size_t pieces) {
  Series series{.name = std::move(name), .unit = Unit::bytes};
  const auto add = [&](std::size_t moment) {
    const std::int64_t time = time_of(snapshot, device, static_cast<std::uint32_t>(moment));
    series.t_ns.push_back(time == kNotRecorded ? 0 : time);
    series.v.push_back(static_cast<double>(by_moment[moment]));
    series.event.push_back(static_cast<std::int64_t>(moment) - 1);
  };
  const std::size_t step = std::max<std::size_t>(1, (by_moment.size() + pieces - 1) / pieces);
  for (std::size_t first = 0; first < by_moment.size(); first += step) {
    const auto begin = by_moment.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = by_moment.begin() + static_cast<std::ptrdiff_t>(std::min(first + step, by_moment.size()));
    const auto [low, high] = std::minmax_element(begin, end);
    std::array points{begin, low, high, end - 1};
    std::sort(points.begin(), points.end());
    for (std::size_t i = 0; i < points.size(); i++) {
      if (i == 0 || points[i] != points[i - 1]) add(static_cast<std::size_t>(points[i] - by_moment.begin()));
    }
  }
  return series;
}

}  // namespace stepscope::snapshot
