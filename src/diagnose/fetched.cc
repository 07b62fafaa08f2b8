#include "diagnose/fetched.h"

#include <set>
#include <utility>

#include "diagnose/device_work.h"
#include "model/copy_way.h"

namespace stepscope::diagnose {

Fetched fetched_by(const Case& about, const Function& function, std::span<const std::uint32_t> stretches) {
  constexpr std::int64_t kBehindNs = 500'000;                 // what makes an array of it lies between
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // a file may say anything
  Fetched out;
  if (function.first.empty()) return out;
  std::set<std::pair<const Trace*, std::int64_t>> starts;
  for (const std::uint32_t node : stretches) starts.insert({about.work(node).trace, about.work(node).start_ns});
  const auto is_used_by_one = [&](const Work& work) {
    const std::int64_t end_ns = work.trace->slices.end_ns(work.operation);
    const auto next = starts.lower_bound({work.trace, end_ns});
    return next != starts.end() && next->first == work.trace && next->second - end_ns <= kBehindNs;
  };
  const DeviceWork& device = device_work(about);
  for (const std::uint32_t node : device.nodes(DeviceClass::memory_copy)) {
    const Work work = about.work(node);
    const std::int64_t size = work.trace->device.bytes[about.predictor.graph().row[node]];
    if (!copy_way(work.name()).to_host() || size <= kSmallCopyBytes || size > kMostBytes) continue;
    if (work.operation == SliceId::none || !is_used_by_one(work) ||
        function_of(about.code(*work.trace, work.operation)) != function)
      continue;
    if (work.trace == &about.trace) out.bytes += size;
    out.nodes.push_back(node);
    if (const std::uint32_t launch = device.launch_of(node); launch != simulate::kNone) out.nodes.push_back(launch);
    for (const DeviceWait* wait : device.own_waits(about, node)) {
      out.waits.push_back(wait->node);
      out.late.insert(out.late.end(), wait->late.begin(), wait->late.end());
    }
  }
  return out;
}

}  // namespace stepscope::diagnose
