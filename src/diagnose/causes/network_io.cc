#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause network_io_cause() {
  return {
      "network_io", "Network in the step", [](const Case& about, std::vector<Diagnosis>& out) {
        find_code_between(
            about,
            {.doing = Doing::talking,
             .cause = "io",
             .sentence = "The step waits for the network",
             .next = "Fetch before the loop or in workers of the data loader; keep a copy on a disk of the machine"},
            out);
      }};
}

}  // namespace stepscope::diagnose::causes
