// The sampler that stands beside a job while it is recorded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collect/telemetry/sampler.h"

namespace stepscope::collect::telemetry {

// Samples the machine and these processes, with all below them, into the run folder. Ranks are known by their marks
// there. `chosen`: the collectors; empty: all that are not on request.
Result<std::unique_ptr<Sampler>> sample_beside(std::vector<pid_t> jobs, const std::string& run_folder,
                                               const std::vector<Choice>& chosen);

}  // namespace stepscope::collect::telemetry
