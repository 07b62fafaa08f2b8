// Buffers of the model, which DistributedDataParallel sends from one rank to all others before each forward pass.
#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "diagnose/communicating.h"
#include "diagnose/gathered.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose::causes {

namespace {

// What an optimizer, a loader or the program sends itself is needed.
bool is_of_buffers(const Trace& trace, SliceId call) {
  while (call != SliceId::none && trace.name(call) != "DistributedDataParallel.forward") {
    call = trace.slices.parent[call];
  }
  return call != SliceId::none;
}

}  // namespace

Cause buffer_broadcast_cause() {
  return {"buffer_broadcast", "Buffers that are sent around in each step",
          [](const Case& about, std::vector<Diagnosis>& out) {
            const Communicating& all = communicating(about);
            Gathered sent(about);
            std::vector<std::uint32_t> gone;
            const Collective* first = nullptr;
            std::set<StepId> steps;
            std::int64_t bytes = 0;
            for (const Collective& one : all.collectives) {
              if (one.kind != CollectiveKind::broadcast || one.step == StepId::none) continue;
              if (!is_of_buffers(about.trace, one.call)) continue;
              steps.insert(one.step);
              if (first == nullptr) first = &one;
              bytes = std::max(bytes, one.bytes);
              sent.add(one.nodes, to_string(one.kind), 0, 0);
              gone.insert(gone.end(), one.nodes.begin(), one.nodes.end());
            }
            // Where the model only now and then runs so, most steps have nothing of it.
            if (first == nullptr || static_cast<std::int64_t>(steps.size()) < about.steps) return;
            sent.add_relieved(gone);
            if (!sent.worth_saying()) return;
            Diagnosis found = sent.diagnosis(
                {.cause = "communication",
                 .sentence = "One rank sends the buffers of the model to all others before each forward pass",
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
