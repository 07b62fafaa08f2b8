// An operator that computes on the host in a job whose model is on a device: the device waits, and a core takes long
// for what the device does in microseconds.
#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {
namespace {

// What is shorter in one piece computes nothing: it makes a view, or reads a size.
constexpr std::int64_t kComputesOnHostNs = 100'000;
// Launching it on the device takes the host so long.
constexpr std::int64_t kLaunchOnDeviceNs = 10'000;

// The outermost operator around the node's work that has nothing to do with the device; none: it has.
SliceId operator_of_host(const DeviceWork& device, const Work& work) {
  const Trace& trace = *work.trace;
  SliceId found = SliceId::none;
  for (SliceId at = work.slice; at != SliceId::none; at = trace.slices.parent[at]) {
    if (device.uses_device(trace, at)) break;
    if (trace.kind(at) == SliceKind::cpu_op) found = at;
    if (at == work.operation) break;
  }
  return found;
}

// It computes nothing either, however long it takes.
bool makes_memory(std::string_view name) { return name.starts_with("aten::empty") || name == "aten::resize_"; }

bool asks_for_communication(std::string_view name) {
  return is_host_communication(name) || name.starts_with("c10d::") || name.starts_with("nccl:") ||
         name == "record_param_comms";
}

void find_ops_on_cpu(const Case& about, std::vector<Diagnosis>& out) {
  const DeviceWork& device = device_work(about);
  Gathered gathered(about);
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (work.device || work.role != simulate::NodeRole::host || work.operation == SliceId::none) continue;
    if (work.cost_ns < kComputesOnHostNs) continue;
    // Where no operator is known to launch anything, none can be told from those that do.
    if (!device.is_linked(*work.trace)) continue;
    const SliceId op = operator_of_host(device, work);
    if (op == SliceId::none) continue;
    const std::string_view name = work.trace->name(op);
    if (asks_for_communication(name) || makes_memory(work.name())) continue;
    gathered.add(node, work, name, 0, 0.1, kLaunchOnDeviceNs);
  }
  if (!gathered.worth_saying()) return;
  out.push_back(gathered.diagnosis(
      {.cause = "host",
       .sentence = "An operator computes on the host while the device waits",
       .next = "Make its inputs on the device (device=… where they are made, .to(device) once before the loop); what "
               "prepares data belongs into workers of the data loader"}));
  out.back().finding.evidence.push_back(
      {.text = "Calls", .value = static_cast<std::int64_t>(gathered.names().first().pieces), .unit = Unit::count});
}

}  // namespace

Cause op_on_cpu_cause() { return {"op_on_cpu", "An operator on the host", find_ops_on_cpu}; }

}  // namespace stepscope::diagnose::causes
