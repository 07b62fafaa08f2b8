#include "model/taken_memory.h"

#include "model/host_names.h"
#include "model/lookup.h"

namespace stepscope {

SliceId outermost_operator(const Trace& trace, SliceId inside) {
  SliceId out = SliceId::none;
  int level = 0;
  for (SliceId at = inside; at != SliceId::none && level < kDeepestWalk; at = trace.slices.parent[at], level++) {
    if (trace.kind(at) == SliceKind::cpu_op && trace.name(at) != kGarbageCollection) out = at;
  }
  return out;
}

std::map<SliceId, double> taken_from_system(const Trace& trace) {
  std::map<SliceId, double> out;
  const MemoryEvents& memory = trace.memory;
  for (std::size_t row = 0; row < memory.size(); row++) {
    if (memory.device_type[row] != 0 || !memory.bytes.has(row)) continue;
    const std::int64_t bytes = memory.bytes[row];
    if (bytes < kFromSystemBytes) continue;
    const SliceId by = outermost_operator(trace, slice_at(trace, memory.track[row], memory.time_ns[row]));
    if (by != SliceId::none) out[by] += static_cast<double>(bytes);
  }
  return out;
}

}  // namespace stepscope
