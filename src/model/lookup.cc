#include "model/lookup.h"

#include <algorithm>

namespace stepscope {

SliceId slice_at(const Trace& trace, TrackId track, std::int64_t time_ns) {
  const std::size_t index = static_cast<std::size_t>(track);
  if (index + 1 >= trace.track_begin.size()) return SliceId::none;
  const SliceId* first = trace.by_track.begin() + trace.track_begin[index];
  const SliceId* last = trace.by_track.begin() + trace.track_begin[index + 1];
  const SliceId* after = std::upper_bound(
      first, last, time_ns, [&](std::int64_t time, SliceId id) { return time < trace.slices.start_ns[id]; });
  if (after == first) return SliceId::none;
  SliceId id = *(after - 1);
  for (int level = 0; id != SliceId::none && level < kDeepestWalk; level++) {
    if (trace.slices.end_ns(id) >= time_ns) return id;
    id = trace.slices.parent[id];
  }
  return SliceId::none;
}

SliceId op_around(const Trace& trace, SliceId id) {
  for (int level = 0; id != SliceId::none && level < kDeepestWalk; level++) {
    const SliceKind kind = trace.kind(id);
    if (kind == SliceKind::cpu_op || kind == SliceKind::user_annotation) return id;
    id = trace.slices.parent[id];
  }
  return SliceId::none;
}

StringId op_name(const Trace& trace, SliceId op) {
  if (op == SliceId::none || trace.name(op).starts_with("ProfilerStep")) return StringId::none;
  return trace.slices.name[op];
}

std::size_t row_of(const Column<SliceId>& table, SliceId id) {
  const SliceId* found = std::lower_bound(table.begin(), table.end(), id);
  return found != table.end() && *found == id ? static_cast<std::size_t>(found - table.begin()) : table.size();
}

std::string_view machine_of(const Trace& trace) {
  for (const Metadata& entry : trace.metadata) {
    if (entry.key == "host_name" && entry.json != "\"\"" && entry.json != "\"localhost\"") return entry.json;
  }
  return {};
}

}  // namespace stepscope
