// An operator that computes on the host in a job whose model is on a device: the device waits, and a core takes long
// for what the device does in microseconds.
#include <cstddef>
#include <map>
#include <set>
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

// What brings such an operator its input from the device goes with it, and then so does what takes its result back:
// the copies next to it on its thread, of as many elements. A result that only goes to the device has to go there.
class CopiesBeside {
 public:
  // `computing`: outermost operators of the trace in which one computes on the host.
  CopiesBeside(const Case& about, const Trace& trace, const std::set<SliceId>& computing)
      : about_(about),
        trace_(trace),
        computing_(computing),
        device_(device_work(about)),
        operations_(about.operations(trace)) {
    for (const std::uint32_t node : device_.nodes(DeviceClass::memory_copy)) {
      const Work work = about.work(node);
      if (work.trace == &trace && work.operation != SliceId::none) copies_[work.operation].push_back(node);
    }
  }

  void add_to(Gathered& gathered) const {
    for (std::size_t i = 0; i < operations_.size(); i++) {
      if (!computing_.contains(operations_[i].slice)) continue;
      const Operation* brings = copy_near(i, -1);
      if (brings == nullptr) continue;
      add(*brings, gathered);
      if (const Operation* takes_back = copy_near(i, 1); takes_back != nullptr) add(*takes_back, gathered);
    }
  }

 private:
  // The next operation in that direction that copies as many elements, there to the host and here to the device;
  // nullptr: before it comes another copy, or something that takes its time and is no operator of that kind.
  const Operation* copy_near(std::size_t from, int direction) const {
    constexpr int kMostBetween = 4;
    const std::int64_t elements = inputs(about_).of(trace_, operations_[from].slice).elements();
    auto at = static_cast<std::ptrdiff_t>(from);
    for (int i = 0; i < kMostBetween; i++) {
      at += direction;
      if (at < 0 || at >= static_cast<std::ptrdiff_t>(operations_.size())) return nullptr;
      const Operation& one = operations_[static_cast<std::size_t>(at)];
      const auto copies = copies_.find(one.slice);
      if (copies == copies_.end()) {
        if (device_.uses_device(trace_, one.slice)) return nullptr;
        if (one.cost_ns >= kComputesOnHostNs && !computing_.contains(one.slice)) return nullptr;
        continue;
      }
      const CopyWay way = copy_way(about_.work(copies->second.front()).name());
      const bool is_it = direction < 0 ? way.to_host() : way.to_device();
      const bool fits = elements > 0 && inputs(about_).of(trace_, one.slice).elements() == elements;
      return is_it && fits ? &one : nullptr;
    }
    return nullptr;
  }

  void add(const Operation& copy, Gathered& gathered) const {
    for (const std::uint32_t node : copy.nodes) gathered.add_along(node, 0, 0.1);
    for (const std::uint32_t node : copies_.at(copy.slice)) {
      gathered.add_along(node, 0, 0.1);
      for (const DeviceWait* wait : device_.own_waits(about_, node)) gathered.add_wait_along(wait->node, wait->late);
    }
  }

  const Case& about_;
  const Trace& trace_;
  const std::set<SliceId>& computing_;
  const DeviceWork& device_;
  std::vector<Operation> operations_;
  std::map<SliceId, std::vector<std::uint32_t>> copies_;  // nodes, by outermost operator
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
    gathered.add(node, work, name, 0, 0.1, kLaunchOnDeviceNs);
    computing[work.trace].insert(work.operation);
  }
  if (!gathered.worth_saying()) return;
  for (const auto& [trace, operators] : computing) CopiesBeside(about, *trace, operators).add_to(gathered);
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
