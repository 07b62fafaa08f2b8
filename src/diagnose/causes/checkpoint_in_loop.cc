#include "diagnose/code_between.h"

namespace stepscope::diagnose::causes {

Cause checkpoint_in_loop_cause() {
  return {"checkpoint_in_loop", "Checkpoints written in the loop", [](const Case& about, std::vector<Diagnosis>& out) {
            find_code_between(about,
                              {.doing = Doing::saving,
                               .cause = "host",
                               .sentence = "The loop waits while a checkpoint is written",
                               .next = "Save less often, or from a copy in another thread or process "
                                       "(torch.distributed.checkpoint.async_save)",
                               .called = "save",
                               .too_often = true},
                              out);
          }};
}

}  // namespace stepscope::diagnose::causes
