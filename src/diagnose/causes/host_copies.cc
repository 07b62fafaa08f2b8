// A device that is fed by the host: copies to it fill its time, whatever memory they come from. What they bring
// (weights, states, data) costs nothing where it stays on the device, and nothing beside what is computed meanwhile
// where it comes early enough.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/intervals.h"
#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

// Of the steps; less is what an input takes that comes a little late.
constexpr double kFillsDevice = 0.1;

// Of the device, of all devices of the run, on which copies to it took most of the time from its first work to its
// last.
struct FilledDevice {
  double share = 0;
  std::int64_t copies = 0, bytes = 0, copying_ns = 0;
};

FilledDevice most_filled(const Run& run) {
  FilledDevice most;
  for (const RankTime& rank : rank_times(run)) {
    for (const DeviceTime& device : rank.devices) {
      const Trace& trace = *rank.trace;
      FilledDevice here;
      std::vector<Interval> all;
      for (const std::uint32_t row : device.rows) {
        const SliceId slice = trace.device.slice[row];
        if (trace.kind(slice) != SliceKind::memcpy || !copy_way(trace.name(slice)).to_device()) continue;
        here.copies++;
        all.push_back({trace.slices.start_ns[slice], trace.slices.end_ns(slice)});
        if (trace.device.bytes[row] == kAbsent) continue;
        here.bytes += trace.device.bytes[row];
        here.copying_ns += trace.slices.dur_ns[slice];
      }
      const std::int64_t span = device.span.end - device.span.start;
      if (span > 0)
        here.share = static_cast<double>(length(make_intervals(std::move(all)))) / static_cast<double>(span);
      if (here.share > most.share) most = here;
    }
  }
  return most;
}

void find_host_copies(const Case& about, std::vector<Diagnosis>& out) {
  const DeviceWork& device = device_work(about);
  std::int64_t computed_ns = 0, copied_ns = 0;
  for (const std::uint32_t node : device.nodes(DeviceClass::compute)) computed_ns += about.work(node).cost_ns;
  std::vector<std::uint32_t> copies;
  for (const std::uint32_t node : device.nodes(DeviceClass::memory_copy)) {
    const Work work = about.work(node);
    if (!copy_way(work.name()).to_device()) continue;
    copies.push_back(node);
    copied_ns += work.cost_ns;
  }
  if (copied_ns == 0) return;
  const double hidden = static_cast<double>(computed_ns) / static_cast<double>(copied_ns);
  Gathered gathered(about);
  for (const std::uint32_t node : copies) {
    const Work work = about.work(node);
    gathered.add(node, work, asker_name(about, node, work), 0, std::max(0.0, 1 - hidden));
  }
  if (about.share(gathered.names().total_ns()) < kFillsDevice) return;
  out.push_back(gathered.diagnosis(
      {.cause = "copy",
       .sentence = "Copies from the host fill the device's time",
       .next = "Keep on the device what is copied again and again (weights and optimizer states: no offloading to the "
               "host, or a smaller type for them); copy the rest ahead, from pinned memory and on a stream of its own, "
               "while the device computes"}));
  const FilledDevice filled = most_filled(about.run);
  auto& evidence = out.back().finding.evidence;
  evidence.push_back({.text = "Of the device's time from its first work to its last",
                      .value = filled.share,
                      .unit = Unit::ratio,
                      .query = "stepscope report PATH --only copies"});
  evidence.push_back({.text = "Copies to that device", .value = filled.copies, .unit = Unit::count});
  if (filled.copying_ns == 0) return;  // no bytes are recorded
  evidence.push_back({.text = "Bytes", .value = filled.bytes, .unit = Unit::bytes});
  evidence.push_back({.text = "Bandwidth",
                      .value = static_cast<double>(filled.bytes) / static_cast<double>(filled.copying_ns),
                      .unit = Unit::gb_per_s});
}

}  // namespace

Cause host_copies_cause() { return {"host_copies", "A device that is fed by the host", find_host_copies}; }

}  // namespace stepscope::diagnose::causes
