#include "diagnose/loops.h"

namespace stepscope::diagnose::causes {

Cause per_sample_loop_cause() {
  return {"per_sample_loop", "A loop over samples", [](const Case& about, std::vector<Diagnosis>& out) {
            find_loops(
                about, [](const Loop& loop) { return !is_over_parameters(loop); },
                {.cause = "host",
                 .sentence = "A loop in Python calls the same small operators once per item",
                 .next = "Do it for all items at once: stack them and use the batched operator, torch.vmap, or a mask "
                         "in place of a condition",
                 .how = {.least = 0.3, .most = 1}},
                out);
          }};
}

}  // namespace stepscope::diagnose::causes
