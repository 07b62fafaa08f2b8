#include "collect/telemetry/beside.h"

#include <utility>

#include "collect/telemetry/groups.h"

namespace stepscope::collect::telemetry {

Result<std::unique_ptr<Sampler>> sample_beside(std::vector<pid_t> jobs, const std::string& run_folder,
                                               const std::vector<Choice>& chosen) {
  SamplerOptions options;
  options.only = chosen;
  return Sampler::start(run_folder, options, GroupFinder(options.roots, std::move(jobs), ranks_by_marks(run_folder)));
}

}  // namespace stepscope::collect::telemetry
