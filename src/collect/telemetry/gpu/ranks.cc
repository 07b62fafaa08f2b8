#include "collect/telemetry/gpu/ranks.h"

#include <algorithm>

namespace stepscope::collect::telemetry::gpu {

void Ranks::follow(const std::vector<Group>& groups) {
  owners_.follow(groups);
  targets_.clear();
  for (const Group& group : groups) targets_.push_back(group.target);
}

void Ranks::add(unsigned gpu, std::span<const nvml::Process> processes) {
  for (const nvml::Process& process : processes) {
    const auto owner = owners_.of(process.pid);
    if (!owner || *owner >= uses_.size()) continue;
    std::vector<Use>& uses = uses_[*owner];
    if (uses.empty() || uses.back().gpu != gpu) uses.push_back({gpu, 0});
    uses.back().bytes += process.bytes;
  }
}

void Ranks::sample(Sink& sink) const {
  for (std::size_t i = 0; i < uses_.size(); i++) {
    const std::vector<Use>& uses = uses_[i];
    if (uses.empty()) continue;
    double bytes = 0;
    for (const Use& use : uses) bytes += static_cast<double>(use.bytes);
    const auto most = std::max_element(uses.begin(), uses.end(),
                                       [](const Use& one, const Use& other) { return one.bytes < other.bytes; });
    sink.add(sink.series({"gpu", "gpu_memory", targets_[i], "bytes", run::SeriesKind::gauge,
                          "Memory that the rank and its children have on GPUs"}),
             bytes);
    sink.add(sink.series({"gpu", "gpu_index", targets_[i], "index", run::SeriesKind::gauge,
                          "The GPU on which it has most memory; 3 is the target \"gpu 3\""}),
             static_cast<double>(most->gpu));
  }
}

}  // namespace stepscope::collect::telemetry::gpu
