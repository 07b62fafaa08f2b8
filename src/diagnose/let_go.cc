#include "diagnose/let_go.h"

#include <algorithm>

namespace stepscope::diagnose {

std::vector<LetGo> let_go(const Trace& trace, TrackId thread, std::int64_t least_bytes) {
  std::vector<LetGo> all;
  for (std::size_t row = 0; row < trace.memory.size(); row++) {
    if (trace.memory.track[row] != thread || trace.memory.device_type[row] != 0 || !trace.memory.bytes.has(row))
      continue;
    if (trace.memory.bytes[row] <= -least_bytes) all.push_back({trace.memory.time_ns[row], -trace.memory.bytes[row]});
  }
  std::sort(all.begin(), all.end(), [](const LetGo& a, const LetGo& b) { return a.time_ns < b.time_ns; });
  return all;
}

}  // namespace stepscope::diagnose
