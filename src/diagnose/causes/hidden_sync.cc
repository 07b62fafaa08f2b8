// The host stops in the middle of a step until the device has done all it was given: a value is asked for, a size
// depends on data, somebody synchronizes. Then the device waits until the host has launched again.
#include <map>
#include <set>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {
namespace {

// Other causes explain those waits: memory is taken from the device, ranks wait for each other, or a batch comes.
bool is_explained_elsewhere(const Case& about, const DeviceWait& wait) {
  const Work thread = about.work(wait.node), awaited = about.work(wait.waited_for);
  if (takes_memory(thread.name()) || thread.role == simulate::NodeRole::data_loader) return true;
  return wait.for_input || awaited.role == simulate::NodeRole::communicate;
}

// What reading takes the thread itself goes with the wait, also where the device has nothing to do anyway.
void add_reading(const Case& about, const Trace& trace, const std::set<SliceId>& readers, Gathered& gathered) {
  for (const Operation& operation : about.operations(trace)) {
    if (!readers.contains(operation.slice)) continue;
    gathered.add(operation.nodes, trace.name(operation.slice), 0, 0.1);
  }
}

void find_hidden_sync(const Case& about, std::vector<Diagnosis>& out) {
  const DeviceWork& device = device_work(about);
  Gathered gathered(about);
  std::int64_t waits = 0, idles = 0;
  std::map<const Trace*, std::set<SliceId>> readers;
  for (const DeviceWait& wait : device.waits()) {
    if (is_explained_elsewhere(about, wait)) continue;
    const Work work = about.work(wait.node);
    const std::string_view asker = work.trace->name(wait.asker == SliceId::none ? wait.call : wait.asker);
    gathered.add_wait(wait.node, work, asker, wait.late);
    if (reads_number(asker)) {
      readers[work.trace].insert(wait.asker);
      const Work copy = about.work(wait.waited_for);
      if (copy.device && copy_way(copy.name()).to_host()) gathered.add(wait.waited_for, copy, asker, 0, 0.1);
    }
    if (work.trace != &about.trace) continue;
    waits++;
    idles += wait.late.empty() ? 0 : 1;
  }
  for (const auto& [trace, which] : readers) add_reading(about, *trace, which, gathered);
  if (!gathered.worth_saying()) return;
  out.push_back(gathered.diagnosis(
      {.cause = "host",
       .sentence = "The host waits for the device in mid-step, and the device then for the host",
       .next = "Keep values on the device (no .item(), .cpu(), .tolist(), print or if on a tensor, no masks that "
               "decide sizes: torch.where in place of nonzero), make small tensors there (device=…), and read results "
               "every 100 steps or one step later; torch.cuda.set_sync_debug_mode(\"warn\") shows every such place"}));
  auto& evidence = out.back().finding.evidence;
  if (!out.back().finding.where.op) evidence.push_back({.text = "Call", .value = gathered.names().first().name});
  evidence.push_back({.text = "Waits per step", .value = waits / about.steps, .unit = Unit::count});
  evidence.push_back(
      {.text = "Of these with an idle device behind them", .value = idles / about.steps, .unit = Unit::count});
}

}  // namespace

Cause hidden_sync_cause() { return {"hidden_sync", "Waits for the device in mid-step", find_hidden_sync}; }

}  // namespace stepscope::diagnose::causes
