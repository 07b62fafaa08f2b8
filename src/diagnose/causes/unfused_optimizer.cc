#include "diagnose/loops.h"

namespace stepscope::diagnose::causes {

Cause unfused_optimizer_cause() {
  return {"unfused_optimizer", "An optimizer of many operators", [](const Case& about, std::vector<Diagnosis>& out) {
            find_loops(
                about, [](const Loop& loop) { return is_optimizer(loop); },
                {.cause = "host",
                 .sentence = "The optimizer updates each parameter with many small operators",
                 .next = "Pass fused=True to the optimizer (Adam, AdamW, SGD and Adagrad have it, on the CPU too), else foreach=True",
                 .how = {.least = 0.25, .most = 0.45, .call_ns = 2'000}},
                out);
          }};
}

}  // namespace stepscope::diagnose::causes
