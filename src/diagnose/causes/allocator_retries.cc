// Memory of the device that is all in use, or in pieces too small: torch's allocator gives back what is free, which
// waits for all that the device was given, and asks anew.
#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {

Cause allocator_retries_cause() {
  return {
      "allocator_retries", "The device's memory runs short in the steps",
      [](const Case& about, std::vector<Diagnosis>& out) {
        const Retries& retries = allocator_retries(about);
        if (retries.empty()) return;
        Gathered gathered(about);
        const auto is_of_them = [&](const Work& work) {
          return !work.device && takes_memory(work.name()) && retries.contains({work.trace, work.operation});
        };
        for (std::uint32_t node = 0; node < about.size(); node++) {
          if (!about.is_work(node)) continue;
          const Work work = about.work(node);
          if (is_of_them(work)) gathered.add_ns(node, work, work.trace->name(work.operation), 0, 0);
        }
        for (const DeviceWait& wait : device_work(about).waits()) {
          const Work work = about.work(wait.node);
          if (is_of_them(work)) {
            gathered.add_wait(wait.node, work, work.trace->name(work.operation), wait.late);
          }
        }
        if (!gathered.worth_saying()) return;
        out.push_back(gathered.diagnosis(
            {.cause = "allocation",
             .sentence = "The device's memory runs short: torch gives back what it has kept, waits for that, and "
                         "asks again",
             .next = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True where it is in pieces (stepscope memory PATH "
                     "shows that); else smaller batches, activation checkpointing, or sharded optimizer states"}));
        out.back().finding.evidence.push_back({.text = "Operators in which it ran short",
                                               .value = static_cast<std::int64_t>(retries.size()),
                                               .unit = Unit::count});
      }};
}

}  // namespace stepscope::diagnose::causes
