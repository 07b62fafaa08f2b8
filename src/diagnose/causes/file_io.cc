#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause file_io_cause() {
  return {"file_io", "Files read in the step", [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::reading,
                               .cause = "io",
                               .sentence = "The step waits for files that it reads itself",
                               .next = "Read them once before the loop, or in workers of the data loader"},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
