// What one rank sends to all others in each step: buffers of the model, as DistributedDataParallel sends them before
// each forward pass, or weights that all ranks have.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "diagnose/communicating.h"
#include "diagnose/gathered.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose::causes {

Cause state_broadcast_cause() {
  return {"state_broadcast", "State that is sent around in each step",
          [](const Case& about, std::vector<Diagnosis>& out) {
            const Communicating& all = communicating(about);
            Gathered sent(about);
            std::vector<std::uint32_t> gone;
            const Collective* first = nullptr;
            std::int64_t count = 0, bytes = 0;
            for (const Collective& one : all.collectives) {
              if (one.kind != CollectiveKind::broadcast || one.step == StepId::none) continue;
              count++;
              if (first == nullptr) first = &one;
              bytes = std::max(bytes, one.bytes);
              sent.add(one.nodes, to_string(one.kind), 0, 0);
              gone.insert(gone.end(), one.nodes.begin(), one.nodes.end());
            }
            // Once in a while, as at a beginning or for a decision, is another matter.
            if (first == nullptr || count < about.steps) return;
            sent.add_relieved(gone);
            if (!sent.worth_saying()) return;
            Diagnosis found = sent.diagnosis(
                {.cause = "communication",
                 .sentence = "One rank sends the same state to all others in each step",
                 .next = "Send what never changes once: DistributedDataParallel(model, broadcast_buffers=False) "
                         "leaves buffers as each rank has them, of batch norms the statistics of its own batches",
                 .doubt = "that all ranks have the same without it is not known"});
            put_call(about, *first, found.finding.where);
            const Source& source = about.places.source(about.trace);
            for (const char* name : {"DistributedDataParallel", "DDP"}) {
              if (const CodeCall* made = source.only_call(name)) diagnose::put_call(*made, found.finding.where);
            }
            if (bytes > 0) {
              found.finding.evidence.push_back(
                  {.text = "Largest", .value = bytes, .unit = Unit::bytes, .query = collectives_of()});
            }
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
