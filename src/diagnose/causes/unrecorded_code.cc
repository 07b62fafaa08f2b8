// Stretches between operators of which the recording shows nothing: no frames, and nothing that runs there.
#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause unrecorded_code_cause() {
  return {"unrecorded_code", "Time between operators of which nothing is recorded",
          [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::unknown,
                               .cause = "host",
                               .sentence = "Between operators the main thread does what was not recorded: Python, "
                                           "reading, waiting",
                               .next = "See which function it is: record with Python frames (stepscope run, or "
                                       "with_stack=True of torch.profiler)",
                               .least = 0.02,
                               .most = 1},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
