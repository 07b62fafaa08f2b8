// A device that runs each piece of work faster than the host can launch the next: what its operators, their launches
// and the Python between them take on the host is what the steps take.
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/answer_parts.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {
namespace {

// Longer stretches are no part of launching: Python that works, an operator that computes on the host, a launch that
// waits for room in the queue or loads its kernel first.
constexpr std::int64_t kLongestBetweenNs = 150'000, kLongestOperatorNs = 100'000, kLongestLaunchNs = 50'000;
// A graph of a whole step is launched at once, but its inputs are made and its results used as before; a compiled step
// still launches some of its kernels one by one.
constexpr double kLeastLeftOfLaunching = 0.1, kMostLeftOfLaunching = 0.6;

struct LaunchingHost {
  const Case& about;
  const DeviceWork& device;
  std::vector<bool> lanes;  // that launch
  std::int64_t host_ns = 0, launches = 0;
  std::vector<std::int64_t> work_ns;  // of each piece of work

  explicit LaunchingHost(const Case& one) : about(one), device(device_work(one)) {
    const simulate::ReplayGraph& graph = about.predictor.graph();
    lanes.assign(graph.lanes.size(), false);
    for (std::uint32_t node = 0; node < about.size(); node++) {
      if (graph.role[node] != simulate::NodeRole::launch) continue;
      lanes[graph.lane[node]] = true;
      if (is_of_longest(node)) launches++;
    }
    for (const DeviceClass one_class : {DeviceClass::compute, DeviceClass::memory_set, DeviceClass::unclassified}) {
      for (const std::uint32_t node : device.nodes(one_class)) {
        if (is_of_longest(node)) work_ns.push_back(about.cost_ns(node));
      }
    }
  }

  // Figures are of the rank whose steps they are.
  bool is_of_longest(std::uint32_t node) const { return about.work(node).trace == &about.trace; }

  bool is_part(std::uint32_t node, const Work& work) const {
    if (work.device || !lanes[about.predictor.graph().lane[node]]) return false;
    if (work.role == simulate::NodeRole::launch) return work.cost_ns <= kLongestLaunchNs;
    if (work.role != simulate::NodeRole::host) return false;
    if (work.between_operators()) return work.cost_ns < kLongestBetweenNs;
    if (work.slice == SliceId::none || !device.uses_device(*work.trace, work.operation)) {
      return work.cost_ns < kLongestOperatorNs;  // a view, a size
    }
    return work.cost_ns < kLongestOperatorNs && !synchronizes(work.name()) && !takes_memory(work.name());
  }
};

void find_small_launches(const Case& about, std::vector<Diagnosis>& out) {
  LaunchingHost launching(about);
  if (launching.launches == 0 || launching.work_ns.empty()) return;
  Gathered gathered(about);
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (!launching.is_part(node, work)) continue;
    if (work.trace == &about.trace) launching.host_ns += work.cost_ns;
    const std::string_view name =
        work.operation == SliceId::none ? "Python between operators" : work.trace->name(work.operation);
    gathered.add(node, work, name, kLeastLeftOfLaunching, kMostLeftOfLaunching);
  }
  if (!gathered.worth_saying()) return;
  const std::int64_t typical_ns = *median(launching.work_ns), per_launch_ns = launching.host_ns / launching.launches;
  if (typical_ns >= per_launch_ns) return;  // the device would keep up
  out.push_back(gathered.diagnosis(
      {.cause = "host",
       .sentence = "The device waits for launches: its work is shorter than what launching it takes",
       .next = "torch.compile(model, mode=\"reduce-overhead\") or a CUDA graph of the step (torch.cuda.graph), which "
               "launches all of it at once; larger batches make the same launches do more"}));
  out.back().is_general = true;
  auto& evidence = out.back().finding.evidence;
  evidence.push_back({.text = "Launches per step", .value = launching.launches / about.steps, .unit = Unit::count});
  evidence.push_back({.text = "Host time per launch", .value = per_launch_ns, .unit = Unit::ns});
  evidence.push_back({.text = "Median of their work on the device", .value = typical_ns, .unit = Unit::ns});
}

}  // namespace

Cause small_launches_cause() {
  return {"small_launches", "Launches that take longer than their work", find_small_launches};
}

}  // namespace stepscope::diagnose::causes
