#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause logging_in_loop_cause() {
  return {"logging_in_loop", "Logging in the loop", [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::logging,
                               .cause = "host",
                               .sentence = "The loop waits while it is logged",
                               .next = "Log every 100 steps, and without flush",
                               .too_often = true},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
