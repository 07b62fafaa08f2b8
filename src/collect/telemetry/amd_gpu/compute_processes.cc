#include "collect/telemetry/amd_gpu/compute_processes.h"

#include <filesystem>

#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry::amd_gpu {

namespace fs = std::filesystem;

ComputeProcesses::ComputeProcesses(const Roots& roots) : kfd_(roots.sys + "/class/kfd/kfd"), owners_(roots.proc) {}

void ComputeProcesses::has_gpu(std::size_t gpu, std::int64_t render_minor) {
  std::error_code code;
  for (fs::directory_iterator at(kfd_ + "/topology/nodes", code), end; !code && at != end; at.increment(code)) {
    KeptFile properties((at->path() / "properties").string()), id((at->path() / "gpu_id").string());
    if (number_after(properties.read(), "drm_render_minor") != render_minor) continue;
    if (const auto number = first_number(id.read()); number && *number != 0) gpus_[std::to_string(*number)] = gpu;
  }
}

void ComputeProcesses::follow(const std::vector<Group>& groups) {
  owners_.follow(groups);
  targets_.clear();
  for (const Group& group : groups) targets_.push_back(group.target);
}

void ComputeProcesses::sample(Sink& sink) const {
  if (targets_.empty()) return;
  std::vector<std::map<std::string, std::int64_t>> uses(targets_.size());  // bytes by GPU
  std::error_code code;
  for (fs::directory_iterator at(kfd_ + "/proc", code), end; !code && at != end; at.increment(code)) {
    const auto pid = first_number(at->path().filename().string());
    const auto owner = pid && *pid > 0 ? owners_.of(static_cast<unsigned>(*pid)) : std::nullopt;
    if (!owner) continue;
    std::error_code ended;  // meanwhile
    for (fs::directory_iterator file(at->path(), ended); !ended && file != end; file.increment(ended)) {
      const std::string name = file->path().filename().string();
      if (name.rfind("vram_", 0) != 0) continue;
      const auto bytes = first_number(KeptFile(file->path().string()).read());
      if (bytes && *bytes > 0) uses[*owner][name.substr(5)] += *bytes;
    }
  }
  for (std::size_t i = 0; i < uses.size(); i++) {
    if (uses[i].empty()) continue;
    double all = 0;
    auto most = uses[i].begin();
    for (auto use = uses[i].begin(); use != uses[i].end(); ++use) {
      all += static_cast<double>(use->second);
      if (use->second > most->second) most = use;
    }
    sink.add(sink.series({"amd_gpu", "gpu_memory", targets_[i], "bytes", run::SeriesKind::gauge,
                          "Memory that the rank and its children have on GPUs"}),
             all);
    const auto gpu = gpus_.find(most->first);
    if (gpu == gpus_.end()) continue;
    sink.add(sink.series({"amd_gpu", "gpu_index", targets_[i], "index", run::SeriesKind::gauge,
                          "The GPU on which it has most memory; 3 is the target \"amd gpu 3\""}),
             static_cast<double>(gpu->second));
  }
}

}  // namespace stepscope::collect::telemetry::amd_gpu
