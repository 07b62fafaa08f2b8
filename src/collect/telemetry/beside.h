// The sampler that stands beside a job while it is recorded.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "collect/telemetry/sampler.h"
#include "collect/telemetry/turn.h"

namespace stepscope::collect::telemetry {

struct BesideOptions {
  std::string run_folder;
  std::vector<Choice> chosen;    // the collectors; empty: all but those on request
  std::string openmetrics, job;  // as of SamplerOptions
};

// Samples the machine and the job's processes, with all below them, into the run folder, unless another one does so for
// this run on this host. Ranks are known by their marks there.
class SamplerBeside {
 public:
  explicit SamplerBeside(BesideOptions options) : options_(std::move(options)), turn_(options_.run_folder) {}

  // To be called when the job is there, and again and again while it runs: it begins when it is its turn. Sentences for
  // the user.
  std::vector<std::string> look(const std::vector<pid_t>& jobs);
  bool samples() const { return sampler_ != nullptr; }
  // Ends it; what went wrong.
  std::vector<std::string> end();

 private:
  std::vector<std::string> begin(const std::vector<pid_t>& jobs);

  BesideOptions options_;
  Turn turn_;  // given back after the sampler has ended
  std::unique_ptr<Sampler> sampler_;
  std::vector<std::string> problems_;
  bool is_second_ = false;  // another one was before us
};

}  // namespace stepscope::collect::telemetry
