#include "diagnose/loops.h"

namespace stepscope::diagnose::causes {

Cause per_parameter_loop_cause() {
  return {"per_parameter_loop", "A loop over parameters", [](const Case& about, std::vector<Diagnosis>& out) {
            find_loops(
                about, [](const Loop& loop) { return is_over_parameters(loop); },
                {.cause = "host",
                 .sentence = "A loop in Python calls the same operators once per parameter",
                 .next = "Use the operators that take lists, such as torch._foreach_lerp_, or flatten the parameters "
                         "into one tensor",
                 .how = {.least = 0.6, .most = 1, .call_part = 0.4}},
                out);
          }};
}

}  // namespace stepscope::diagnose::causes
