#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause garbage_collection_cause() {
  return {"garbage_collection", "Python's garbage collector in the step",
          [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::collecting,
                               .cause = "host",
                               .sentence = "The step waits for Python's garbage collector",
                               .next = "Collect outside of the loop: gc.collect() and gc.freeze() before it, "
                                       "gc.disable() in it; no gc.collect() each step",
                               .called = "collect"},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
