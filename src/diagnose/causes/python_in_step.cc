#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause python_in_step_cause() {
  return {
      "python_in_step", "Python code between operators", [](const Case& about, std::vector<Diagnosis>& out) {
        find_code_between(
            about,
            {.doing = Doing::computing,
             .cause = "host",
             .sentence = "Python between operators keeps the step waiting",
             .next = "Do the same for the whole batch with torch or NumPy, or prepare it in workers of the data loader",
             .least = 0,
             .most = 0.2},  // what does it for the whole batch takes something too
            out);
      }};
}

}  // namespace stepscope::diagnose::causes
