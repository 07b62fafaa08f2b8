#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause compile_in_window_cause() {
  return {"compile_in_window", "Compilation during the steps", [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::compiling,
                               .cause = "compile",
                               .sentence = "torch.compile compiles during the steps",
                               .next = "Warm up before measuring; where it happens again and again, mark what changes "
                                       "as dynamic (torch._dynamo.mark_dynamic) or keep shapes the same"},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
