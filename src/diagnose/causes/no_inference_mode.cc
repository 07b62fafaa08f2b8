// A model that only answers, while autograd notes all that a backward pass would need.
#include <algorithm>

#include "diagnose/model_calls.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {

namespace {

bool goes_back(const Trace& trace) {
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    if (is_backward(trace.name(trace.ops.slice[row]))) return true;
  }
  return false;
}

}  // namespace

Cause no_inference_mode_cause() {
  return {"no_inference_mode", "Autograd notes what nobody needs", [](const Case& about, std::vector<Diagnosis>& out) {
            // Noting an operator and letting go of it again; beside it memory that is kept until the answer is there.
            constexpr std::int64_t kLeastNoteNs = 1'000, kMostNoteNs = 6'000;
            constexpr double kMemoryPart = 0.1;
            const std::vector<ModelCall>& calls = model_calls(about);
            Gathered noted(about);
            for (const ModelCall& call : calls) {
              if (call.trains || goes_back(*call.trace)) return;  // a job that trains
              if (!call.recorded) continue;
              for (const std::uint32_t node : call.nodes) {
                const Work work = about.work(node);
                if (work.device || work.operation == SliceId::none || work.slice != work.operation) continue;
                const auto kept = static_cast<std::int64_t>((1 - kMemoryPart) * static_cast<double>(work.cost_ns));
                noted.add_ns(node, work, call.module, std::max(work.cost_ns / 4, kept - kMostNoteNs),
                             std::max(work.cost_ns / 4, work.cost_ns - kLeastNoteNs));
              }
            }
            if (!noted.worth_saying()) return;
            Diagnosis found = noted.diagnosis(
                {.cause = "serving",
                 .sentence = "The model only answers, and autograd notes all that a backward pass would need",
                 .next = "Call it under torch.inference_mode()"});
            found.finding.where.module = noted.names().first().name;
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
