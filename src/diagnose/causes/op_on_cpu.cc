// An operator that computes on the host in a job whose model is on a device: the device waits, and a core takes long
// for what the device does in microseconds.
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "diagnose/inputs.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {
namespace {

// What is shorter in one piece computes nothing: it makes a view, or reads a size.
constexpr std::int64_t kComputesOnHostNs = 100'000;
// Launching it on the device takes the host so long.
constexpr std::int64_t kLaunchOnDeviceNs = 10'000;
// Of what it takes here the device takes no more: a sort of 32,768 numbers took 4 %, as it was recorded.
constexpr double kLeftOnDevice = 0.05;

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

// What brings such an operator its input from the device, or takes its result there, goes with it: the copies that come
// next to it on its thread, of as many elements.
class CopiesBeside {
 public:
  explicit CopiesBeside(const Case& about) : about_(about), device_(device_work(about)) {
    for (const std::uint32_t node : device_.nodes(DeviceClass::memory_copy)) {
      const Work work = about.work(node);
      if (work.operation != SliceId::none) copies_[{work.trace, work.operation}].push_back(node);
    }
  }

  // `computing`: outermost operators in which one computes on the host.
  void add(const Trace& trace, const std::set<SliceId>& computing, Gathered& gathered) const {
    const std::vector<Operation> operations = about_.operations(trace);
    for (std::size_t i = 0; i < operations.size(); i++) {
      if (!computing.contains(operations[i].slice)) continue;
      const std::int64_t elements = inputs(about_).of(trace, operations[i].slice).elements();
      for (std::size_t k = i; k-- > 0 && i - k <= kMostBetween;) {
        if (!goes_on(trace, operations[k], elements, false, gathered)) break;
      }
      for (std::size_t k = i + 1; k < operations.size() && k - i <= kMostBetween; k++) {
        if (!goes_on(trace, operations[k], elements, true, gathered)) break;
      }
    }
  }

 private:
  static constexpr std::size_t kMostBetween = 3;

  // Adds the operation if it is that copy; true: it is neither this nor anything that computes, so look on.
  bool goes_on(const Trace& trace, const Operation& operation, std::int64_t elements, bool to_device,
               Gathered& gathered) const {
    const auto found = copies_.find({&trace, operation.slice});
    if (found == copies_.end()) return operation.cost_ns < kComputesOnHostNs;
    const CopyWay way = copy_way(about_.work(found->second.front()).name());
    const bool is_it = (to_device ? way.to_device() : way.to_host()) && elements > 0 &&
                       inputs(about_).of(trace, operation.slice).elements() == elements;
    if (!is_it) return false;
    for (const std::uint32_t node : operation.nodes) gathered.add_along(node, 0, 0.1);
    for (const std::uint32_t node : found->second) {
      gathered.add_along(node, 0, 0.1);
      for (const DeviceWait* wait : device_.own_waits(about_, node)) {
        gathered.add_wait(wait->node, about_.work(wait->node), trace.name(operation.slice), wait->late);
      }
    }
    return false;
  }

  const Case& about_;
  const DeviceWork& device_;
  std::map<std::pair<const Trace*, SliceId>, std::vector<std::uint32_t>> copies_;  // nodes, by outermost operator
};

void find_ops_on_cpu(const Case& about, std::vector<Diagnosis>& out) {
  const DeviceWork& device = device_work(about);
  Gathered gathered(about);
  std::map<const Trace*, std::set<SliceId>> computing;
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
    gathered.add(node, work, name, 0, kLeftOnDevice, kLaunchOnDeviceNs);
    computing[work.trace].insert(work.operation);
  }
  const CopiesBeside copies(about);
  for (const auto& [trace, operators] : computing) copies.add(*trace, operators, gathered);
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
