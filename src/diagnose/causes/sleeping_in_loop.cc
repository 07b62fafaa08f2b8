#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause sleeping_in_loop_cause() {
  return {"sleeping_in_loop", "Pauses in the loop", [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::sleeping,
                               .cause = "host",
                               .sentence = "The loop sleeps",
                               .next = "Take the pause or the rate limit out of the loop, or wait in another thread"},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
