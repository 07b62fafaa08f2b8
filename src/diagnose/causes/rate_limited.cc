// A service refuses or delays requests, and the loop waits until it may ask again.
#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause rate_limited_cause() {
  return {"rate_limited", "Waits until a service may be asked again",
          [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::limited,
                               .cause = "network",
                               .sentence = "The loop waits until it may ask a service again",
                               .next = "Ask once for many samples, keep what was fetched, or fetch ahead in another "
                                       "thread so that the pauses overlap with the steps"},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
