// Memory taken from the device, or given back, in the steps: each such call takes long, and giving back waits until the
// device has done all it was given. torch keeps what it took; it asks again where sizes change or memory is short.
#include <string>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "model/host_names.h"

namespace stepscope::diagnose::causes {

Cause device_allocation_cause() {
  return {"device_allocation", "Memory taken from the device in the steps",
          [](const Case& about, std::vector<Diagnosis>& out) {
            Gathered gathered(about);
            std::int64_t calls = 0;
            const Retries& retries = allocator_retries(about);  // a cause of their own
            Work longest;
            const auto name_of = [](const Work& work) {
              return work.operation == SliceId::none ? work.name() : work.trace->name(work.operation);
            };
            for (std::uint32_t node = 0; node < about.size(); node++) {
              if (!about.is_work(node)) continue;
              const Work work = about.work(node);
              if (work.device || work.slice == SliceId::none || !takes_memory(work.name())) continue;
              if (retries.contains({work.trace, work.operation})) continue;
              gathered.add_ns(node, work, name_of(work), 0, 0);
              calls++;
              if (longest.trace == nullptr || work.cost_ns > longest.cost_ns) longest = work;
            }
            for (const DeviceWait& wait : device_work(about).waits()) {
              const Work work = about.work(wait.node);
              if (!takes_memory(work.name()) || retries.contains({work.trace, work.operation})) continue;
              gathered.add_wait(wait.node, work, name_of(work), wait.late);
              calls--;  // it was two nodes
            }
            if (!gathered.worth_saying()) return;
            out.push_back(gathered.diagnosis(
                {.cause = "allocation",
                 .sentence = "Memory is taken from the device, or given back, in the steps",
                 .next = "Warm up with the largest batch, no torch.cuda.empty_cache() and no pin_memory() in the loop; "
                         "where sizes change, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; where memory is short, "
                         "smaller batches or activation checkpointing"}));
            auto& evidence = out.back().finding.evidence;
            evidence.push_back({.text = "Calls", .value = calls, .unit = Unit::count});
            evidence.push_back({.text = "Longest of them", .value = std::string(longest.name())});
          }};
}

}  // namespace stepscope::diagnose::causes
