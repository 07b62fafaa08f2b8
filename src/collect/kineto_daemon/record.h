// Records ranks that ask a Kineto daemon (started with KINETO_USE_DAEMON=1) into a run folder, without entering them:
// no rights are needed but to be the same user. Steps, phases and module ranges are not in such a recording.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collect/capture.h"
#include "collect/processes/ranks.h"

namespace stepscope::collect::kineto {

struct Recording {
  std::string run_folder;
  double seconds = 0;         // > 0: so long, all ranks together
  double warmup_seconds = 1;  // thrown away before these
  std::int64_t steps = 0;     // of the optimizer, where seconds is 0; of one rank only
  Parts with;
};

struct Recorded {
  std::vector<std::string> traces;    // relative to the run folder
  std::vector<std::string> problems;  // one sentence per rank without a trace, or other things people should know
};

// Whether the process was started so that it asks.
bool asks_daemon(const Process& process);

// Takes the daemon's place, or asks the dynolog that has it. Usage error: several ranks by steps, which the protocol
// does not start together.
Result<Recorded> record(const std::vector<RankProcess>& ranks, const Recording& recording);

}  // namespace stepscope::collect::kineto
