// Gradients that travel when the backward pass has ended: nothing is computed meanwhile.
#include "diagnose/communicating.h"
#include "diagnose/gathered.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose::causes {

Cause exposed_communication_cause() {
  return {"exposed_communication", "Communication that nothing hides",
          [](const Case& about, std::vector<Diagnosis>& out) {
            Gathered exposed(about);
            std::int64_t count = 0;
            const Collective* first = nullptr;
            for (const Collective& one : communicating(about).collectives) {
              if (!one.after_backward) continue;
              count++;
              if (first == nullptr) first = &one;
              exposed.add(one.nodes, to_string(one.kind), 0, 0.1);
            }
            // With the collectives the loop goes that asks for them.
            if (first != nullptr) exposed.add(loops_of_calls(about), to_string(first->kind), 0, 0.1);
            if (!exposed.worth_saying()) return;
            Diagnosis found = exposed.diagnosis(
                {.cause = "communication",
                 .sentence = "Ranks communicate when the backward pass has ended, and compute nothing meanwhile",
                 .next = "Let DistributedDataParallel (or FSDP) send gradients in buckets while the backward pass goes "
                         "on, in place of all_reduce calls behind it"});
            put_call(about, *first, found.finding.where);
            const auto steps = static_cast<double>(std::max<std::int64_t>(1, communicating(about).steps));
            found.finding.evidence.push_back({.text = "Such collectives per step",
                                              .value = static_cast<double>(count) / steps,
                                              .query = collectives_of()});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
