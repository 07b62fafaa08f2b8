#include "snapshot/history.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "snapshot/byte_sums.h"
#include "snapshot/classes.h"
#include "snapshot/curve.h"
#include "snapshot/marks.h"
#include "snapshot/replay.h"

namespace stepscope::snapshot {
namespace {

constexpr std::int64_t kMostDevices = 1024;  // numbers of devices beyond are damage

struct DeviceParts {
  SnapshotRows events;
  std::vector<std::uint32_t> segments;  // rows
};

// Of each device that has events or segments, by number. Events that two devices share are of the first.
std::map<std::int64_t, DeviceParts> parts_by_device(const CudaSnapshot& snapshot) {
  std::map<std::int64_t, DeviceParts> all;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (std::size_t i = 0; i < snapshot.devices.size() && i < kMostDevices; i++) {
    const SnapshotRows rows = snapshot.devices[i];
    if (rows.count > 0 && seen.insert({rows.first, rows.count}).second) all[static_cast<std::int64_t>(i)].events = rows;
  }
  for (std::uint32_t i = 0; i < snapshot.segments.size(); i++) {
    const std::int64_t device = snapshot.segments[i].device;
    if (device >= 0 && device < kMostDevices) all[device].segments.push_back(i);
  }
  return all;
}

void find_peak(const AllocatorHistory& history, SnapshotDevice& device) {
  for (std::uint32_t i = device.allocations.first; i < device.allocations.first + device.allocations.count; i++) {
    if (history.is_static(i)) device.static_bytes = plus(device.static_bytes, history.allocations.block_bytes[i]);
  }
  const std::vector<std::int64_t> held = held_by_moment(history, device);
  const auto most = std::max_element(held.begin(), held.end());
  device.peak_bytes = *most;
  device.peak = static_cast<std::uint32_t>(most - held.begin());
}

Issue issue_of(const CudaSnapshot& snapshot, const char* code, Severity severity, std::string sentence,
               std::string advice, std::uint64_t count) {
  return {code, severity, std::move(sentence), std::move(advice), count, snapshot.path, std::nullopt, std::nullopt};
}

}  // namespace

AllocatorHistory history_of(const CudaSnapshot& snapshot) {
  AllocatorHistory history;
  history.allocation_of_event.resize(snapshot.events.size(), kNoEntry);
  for (const auto& [number, parts] : parts_by_device(snapshot)) {
    SnapshotDevice device{.number = number, .events = parts.events};
    add_allocations(snapshot, parts.segments, device, history);
    add_ranges(snapshot, parts.segments, device, history);
    size_blocks(snapshot, device, history);
    find_peak(history, device);
    add_marks(snapshot, device);
    history.devices.push_back(std::move(device));
  }
  give_classes(snapshot, history);
  return history;
}

std::vector<Issue> issues_of(const CudaSnapshot& snapshot, const AllocatorHistory& history) {
  HistoryFaults sum;
  for (const SnapshotDevice& device : history.devices) {
    sum.lost_frees += device.faults.lost_frees;
    sum.lost_allocs += device.faults.lost_allocs;
    sum.not_at_end += device.faults.not_at_end;
    sum.no_size += device.faults.no_size;
    sum.lost_ranges += device.faults.lost_ranges;
  }
  std::vector<Issue> issues;
  const auto tell = [&](const char* code, Severity severity, std::uint64_t count, std::string sentence,
                        std::string advice = {}) {
    if (count > 0) issues.push_back(issue_of(snapshot, code, severity, std::move(sentence), std::move(advice), count));
  };
  tell("snapshot_lost_frees", Severity::lost, sum.lost_frees,
       "addresses were given again although no event freed them; they count as freed then");
  tell("snapshot_lost_allocations", Severity::lost, sum.lost_allocs,
       "addresses were freed twice, or hold a block at the end, although no event allocated them again");
  tell("snapshot_not_at_end", Severity::info, sum.not_at_end,
       "allocations live on by the events and are not among the blocks at the end");
  tell("snapshot_no_sizes", Severity::lost, sum.no_size, "events have no size and count as 0 bytes");
  tell("snapshot_segments_unclear", Severity::info, sum.lost_ranges,
       "events of segments do not fit the segments at the end; what was reserved is told without them");
  return issues;
}

}  // namespace stepscope::snapshot
