// Reads one CUDA memory snapshot and says what it cost.
//
//   snapshot_file FILE  →  {"cpu_s", "wall_s", "rss_mb", "text_bytes", "events", "stacks", "frames",
//   "peak_active_bytes"}
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cost.h"
#include "read/cuda_snapshot.h"

namespace {

// Of the first device, by its events; what was there before them counts as far as they free it.
std::int64_t peak_active_bytes(const stepscope::CudaSnapshot& snapshot) {
  if (snapshot.devices.empty()) return 0;
  std::int64_t now = 0, lowest = 0, highest = 0;
  const auto [first, count] = snapshot.devices[0];
  for (std::uint32_t row = first; row < first + count; row++) {
    const stepscope::AllocatorAction action = snapshot.events.action[row];
    const std::int64_t size = snapshot.events.size_bytes[row];
    if (action == stepscope::AllocatorAction::alloc) now += size;
    if (action == stepscope::AllocatorAction::free_completed) now -= size;
    lowest = std::min(lowest, now);
    highest = std::max(highest, now);
  }
  return highest - lowest;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const stepscope::bench::Cost cost;
  const auto snapshot = stepscope::read::read_cuda_snapshot(argv[1]);
  const double wall_s = cost.wall_s(), cpu_s = cost.cpu_s();
  if (!snapshot) {
    std::fprintf(stderr, "%s\n", stepscope::to_text(snapshot.error()).c_str());
    return 1;
  }
  std::printf(
      "{\"cpu_s\": %.4f, \"wall_s\": %.4f, \"rss_mb\": %.1f, \"text_bytes\": %llu, \"events\": %zu, \"stacks\": %zu, "
      "\"frames\": %zu, \"peak_active_bytes\": %lld, \"issues\": %zu}\n",
      cpu_s, wall_s, stepscope::bench::Cost::peak_mb(), static_cast<unsigned long long>(snapshot->text_bytes),
      snapshot->events.size(), snapshot->stacks(), snapshot->frames.size(),
      static_cast<long long>(peak_active_bytes(*snapshot)), snapshot->issues.size());
  for (const stepscope::Issue& issue : snapshot->issues) {
    std::fprintf(stderr, "%s: %s (%llu)\n", issue.code.c_str(), issue.sentence.c_str(),
                 static_cast<unsigned long long>(issue.count));
  }
  std::fflush(stdout);
  _exit(0);  // giving the memory back is not what is measured
}
