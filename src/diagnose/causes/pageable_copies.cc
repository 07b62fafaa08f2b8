// Copies that go through memory which the driver cannot hand to the device as it is: it copies them once more itself,
// and who asked waits meanwhile. From pinned memory the device fetches them alone.
#include <algorithm>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"

namespace stepscope::diagnose::causes {
namespace {

// The driver's own copy takes as long as the device's or longer, and both take turns: pinned memory leaves this of
// both at best, and all of it where the device is what is slow.
constexpr double kLeftOfPageable = 0.4;

// What a link carries from pinned memory in GB/s, well and badly, by what NVIDIA's devices can compute: PCI Express 3
// with the first, 4 from 8.0 on, 5 from 9.0 on, sixteen lanes each.
struct Link {
  double well = 0, badly = 0;
};
Link link_of(std::int64_t compute_major) {
  if (compute_major >= 9) return {50, 20};
  return compute_major >= 8 ? Link{25, 10} : Link{12, 5};
}

// Of a copy out of pageable memory that took so long: what pinned memory leaves of it.
std::pair<double, double> left_of_pageable(const Trace& trace, std::int64_t bytes, std::int64_t took_ns) {
  const std::int64_t capability = least_capability(trace);
  if (bytes <= 0 || took_ns <= 0 || capability <= 0 || trace.devices.front().name.starts_with("AMD")) {
    return {kLeftOfPageable, 1};
  }
  const Link link = link_of(capability);
  const double rate = static_cast<double>(bytes) / static_cast<double>(took_ns);  // bytes per ns: GB/s
  return {std::min(1.0, rate / link.well), std::min(1.0, rate / link.badly)};
}

struct HostCopies {
  const Case& about;
  const DeviceWork& device;
  Gathered gathered;
  std::int64_t bytes = 0, copies = 0, pageable = 0;

  explicit HostCopies(const Case& one) : about(one), device(device_work(one)), gathered(one) {}

  void add(std::uint32_t node) {
    const Work work = about.work(node);
    const CopyWay way = copy_way(work.name());
    const std::int64_t size = work.trace->device.bytes[about.predictor.graph().row[node]];
    if ((!way.to_device() && !way.to_host()) || (size != kAbsent && size <= kSmallCopyBytes)) return;
    const std::vector<const DeviceWait*> waits = device.own_waits(about, node);
    if (!way.pageable() && (way.to_host() || waits.empty())) return;
    const std::string_view name = asker_name(about, node, work);
    const auto [least, most] = way.pageable() ? left_of_pageable(*work.trace, size, work.cost_ns) : std::pair(1.0, 1.0);
    gathered.add(node, work, name, least, most);
    if (const std::uint32_t launch = device.launch_of(node); launch != simulate::kNone) {
      const Work call = about.work(launch);
      const std::int64_t left = std::min(call.cost_ns, kAskForCopyNs);
      gathered.add_ns(launch, call, name, left, left);
    }
    for (const DeviceWait* wait : waits) gathered.add_wait(wait->node, about.work(wait->node), name, wait->late);
    if (work.trace != &about.trace) return;
    copies++;
    pageable += way.pageable() ? 1 : 0;
    bytes += std::max<std::int64_t>(size, 0);
  }
};

void find_pageable_copies(const Case& about, std::vector<Diagnosis>& out) {
  HostCopies found(about);
  for (const std::uint32_t node : found.device.nodes(DeviceClass::memory_copy)) found.add(node);
  if (!found.gathered.worth_saying()) return;
  out.push_back(found.gathered.diagnosis(
      {.cause = "copy",
       .sentence = found.pageable > 0 ? "Copies between the device and pageable memory of the host keep it waiting"
                                      : "The host waits for copies to the device that it could leave to it",
       .next = "DataLoader(..., pin_memory=True) or tensor.pin_memory() once, and .to(device, non_blocking=True); "
               "results go back into a pinned buffer"}));
  auto& evidence = out.back().finding.evidence;
  evidence.push_back({.text = "Copies", .value = found.copies, .unit = Unit::count});
  evidence.push_back({.text = "Of these with pageable memory", .value = found.pageable, .unit = Unit::count});
  if (found.bytes > 0) evidence.push_back({.text = "Bytes", .value = found.bytes, .unit = Unit::bytes});
}

}  // namespace

Cause pageable_copies_cause() { return {"pageable_copies", "Copies that the host waits for", find_pageable_copies}; }

}  // namespace stepscope::diagnose::causes
