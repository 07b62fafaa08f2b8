// Who computes on AMD GPUs and with how much of their memory: /sys/class/kfd/kfd/proc/PID/vram_GPU of the kernel's
// compute driver (bytes), which numbers processes as the host does and GPUs by its topology.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/gpu/owners.h"

namespace stepscope::collect::telemetry::amd_gpu {

class ComputeProcesses {
 public:
  explicit ComputeProcesses(const Roots& roots);
  // The GPU of that number is /dev/dri/renderD<minor>.
  void has_gpu(std::size_t gpu, std::int64_t render_minor);
  void follow(const std::vector<Group>& groups);
  void sample(Sink& sink) const;

 private:
  std::string kfd_;
  gpu::Owners owners_;
  std::vector<std::string> targets_;
  std::map<std::string, std::size_t> gpus_;  // by the number of the topology, as text
};

}  // namespace stepscope::collect::telemetry::amd_gpu
