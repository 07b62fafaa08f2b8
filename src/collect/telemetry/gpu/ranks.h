// Memory of GPUs by rank, and on which GPU a rank is.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/gpu/owners.h"
#include "collect/telemetry/nvml.h"

namespace stepscope::collect::telemetry::gpu {

class Ranks {
 public:
  explicit Ranks(std::string proc) : owners_(std::move(proc)) {}
  void follow(const std::vector<Group>& groups);
  bool are_followed() const { return !targets_.empty(); }
  // A sample is: begin, add for each GPU, sample.
  void begin() { uses_.assign(targets_.size(), {}); }
  void add(unsigned gpu, std::span<const nvml::Process> processes);
  void sample(Sink& sink) const;

 private:
  struct Use {
    unsigned gpu;
    unsigned long long bytes;
  };
  Owners owners_;
  std::vector<std::string> targets_;
  std::vector<std::vector<Use>> uses_;  // by target; empty: no GPU, or it is not told
};

}  // namespace stepscope::collect::telemetry::gpu
