#include "collect/telemetry/beside.h"

#include <utility>

#include "collect/telemetry/groups.h"

namespace stepscope::collect::telemetry {

std::vector<std::string> SamplerBeside::look(const std::vector<pid_t>& jobs) {
  if (sampler_ || !problems_.empty()) return {};
  const bool was_ours = turn_.was_ours();
  if (!turn_.is_ours()) {
    is_second_ = true;
    return {};
  }
  // Tasks of a launch end together: for the second that may be left nothing is begun.
  if (is_second_ && !was_ours) return {};
  return begin(jobs);
}

std::vector<std::string> SamplerBeside::begin(const std::vector<pid_t>& jobs) {
  SamplerOptions options;
  options.only = options_.chosen;
  options.openmetrics = options_.openmetrics;
  options.job = options_.job;
  const std::string& folder = options_.run_folder;
  auto started = Sampler::start(folder, options, GroupFinder(options.roots, jobs, ranks_by_marks(folder)));
  if (!started) {
    problems_.push_back("no telemetry: " + to_text(started.error()));
    return {};
  }
  sampler_ = std::move(*started);
  return sampler_->missed();
}

std::vector<std::string> SamplerBeside::end() {
  if (sampler_) problems_ = sampler_->end();
  sampler_.reset();
  return std::move(problems_);
}

}  // namespace stepscope::collect::telemetry
