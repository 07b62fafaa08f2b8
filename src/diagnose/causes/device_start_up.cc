// A device that is set up while steps are measured: its context is made, and the code of each kernel is loaded when it
// is launched first. Both happen once in a process, so that a step which holds them says little of the others.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {
namespace {

// Launching a kernel whose code is there takes some microseconds, and so does any other call that does not wait.
constexpr std::int64_t kLongForCallNs = 500'000;

// Per launching node: it is the first to launch that kernel.
std::unordered_map<std::uint32_t, bool> first_launches(const Case& about, const DeviceWork& device) {
  std::unordered_map<std::uint32_t, bool> first;
  std::map<std::pair<const Trace*, StringId>, bool> seen;
  for (const DeviceClass one_class : {DeviceClass::compute, DeviceClass::unclassified, DeviceClass::memory_set}) {
    for (const std::uint32_t node : device.nodes(one_class)) {
      const std::uint32_t launch = device.launch_of(node);
      if (launch == simulate::kNone) continue;
      const Work work = about.work(node);
      const bool is_first = seen.try_emplace({work.trace, work.trace->slices.name[work.slice]}, true).second;
      first[launch] = first[launch] || is_first;
    }
  }
  return first;
}

// Per name of a call that does not launch: when it was made first.
std::map<std::pair<const Trace*, StringId>, std::int64_t> first_calls(const Case& about) {
  std::map<std::pair<const Trace*, StringId>, std::int64_t> first;
  for_each_work(about, [&](std::uint32_t, const Work& work) {
    if (work.device || work.slice == SliceId::none || work.trace->kind(work.slice) != SliceKind::runtime) return;
    const std::int64_t start = work.trace->slices.start_ns[work.slice];
    const auto at = first.try_emplace({work.trace, work.trace->slices.name[work.slice]}, start).first;
    at->second = std::min(at->second, start);
  });
  return first;
}

void find_start_up(const Case& about, std::vector<Diagnosis>& out) {
  const auto first = first_launches(about, device_work(about));
  const auto first_call = first_calls(about);
  Gathered gathered(about);
  std::int64_t loads = 0;
  Work longest;
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (work.device || work.slice == SliceId::none || work.trace->kind(work.slice) != SliceKind::runtime) return;
    if (work.cost_ns < kLongForCallNs || takes_memory(work.name()) || synchronizes(work.name())) return;
    if (launch_kind(work.name()) == LaunchKind::copy || work.name().starts_with("synchronize")) return;
    if (work.role == simulate::NodeRole::launch) {
      const auto launched = first.find(node);
      if (launched == first.end() || !launched->second) return;
    } else if (work.trace->slices.start_ns[work.slice] >
               first_call.at({work.trace, work.trace->slices.name[work.slice]})) {
      return;
    }
    loads += work.role == simulate::NodeRole::launch ? 1 : 0;
    if (longest.trace == nullptr || work.cost_ns > longest.cost_ns) longest = work;
    const SliceId around = work.operation == SliceId::none ? work.slice : work.operation;
    gathered.add_ns(node, work, work.trace->name(around), 0, 0);
  });
  if (!gathered.worth_saying()) return;
  out.push_back(gathered.diagnosis(
      {.cause = "start_up",
       .sentence =
           "The device is set up in the steps that were recorded: this happens once, and is no property of a step",
       .next = "Record later: torch.profiler.schedule(wait=…, warmup=…), or stepscope run --steps with a later first "
               "step; for jobs that are as short as that, CUDA_MODULE_LOADING=LAZY"}));
  auto& evidence = out.back().finding.evidence;
  evidence.push_back({.text = "Longest call", .value = std::string(longest.name())});
  evidence.push_back({.text = "It took", .value = longest.cost_ns, .unit = Unit::ns});
  evidence.push_back({.text = "Kernels launched for the first time", .value = loads, .unit = Unit::count});
}

}  // namespace

Cause device_start_up_cause() { return {"device_start_up", "A device that is set up in the steps", find_start_up}; }

}  // namespace stepscope::diagnose::causes
