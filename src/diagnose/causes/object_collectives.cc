// Objects of Python that ranks give one another: each is pickled, sent as bytes and made anew.
#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause object_collectives_cause() {
  return {"object_collectives", "Python objects between ranks", [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::exchanging,
                               .cause = "communication",
                               .sentence = "Ranks give one another objects of Python, which are pickled",
                               .next = "Put what they hold into one tensor, padded to one length where ranks differ, "
                                       "and send that: all_gather, broadcast or all_reduce"},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
