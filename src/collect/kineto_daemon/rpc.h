// Asks a running dynolog to hand out the request, where it holds the name that we would answer on.
//
// Its port takes one message per connection: an int32 length in the machine's own byte order and a JSON object; the
// answer has the same form.
#pragma once

#include <chrono>
#include <vector>

#include "base/result.h"
#include "collect/kineto_daemon/config.h"
#include "collect/kineto_daemon/serve.h"

namespace stepscope::collect::kineto {

struct DynologOptions {
  OnDemand request;       // start_unix_ms 0: `interval` from now and what the clients need
  std::vector<int> pids;  // never empty: an empty list would mean every process of every user
  std::int64_t job = 0;   // SLURM_JOB_ID of the processes; dynolog finds nothing under another one
  std::chrono::milliseconds interval{5000};
  std::chrono::milliseconds patience{5000};  // for each step of the conversation
  int port = 1778;                           // on this machine
};

// dynolog also counts a child of a wanted process as wanted (compile workers of a rank): such traces may be written
// beside the asked ones, but only those of `pids` are in `configured`. Processes that already wait for another request
// come back in too_late, those that dynolog has not heard of in never_asked. By iteration, ranks are told up to one
// interval apart. Fails when nobody listens, the answer is no answer of dynolog's, or the request is not valid.
Result<Served> ask_dynolog(const DynologOptions& options);

}  // namespace stepscope::collect::kineto
