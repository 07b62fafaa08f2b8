// What the specs of the tables of memory snapshots share. A trace without a snapshot has no rows in them.
#pragma once

#include "model/allocator_history.h"
#include "tables/table_parts.h"

namespace stepscope::tables {

inline const CudaSnapshot& said(const Trace& trace) {
  static const CudaSnapshot none;
  return trace.snapshot == nullptr ? none : *trace.snapshot;
}

inline const AllocatorHistory& history(const Trace& trace) {
  static const AllocatorHistory none;
  return trace.snapshot_history == nullptr ? none : *trace.snapshot_history;
}

inline std::int64_t id_or_null(std::uint32_t id) { return id == kNoEntry ? kAbsent : std::int64_t{id}; }

template <class Id>
std::int64_t number(Id id) {
  return id_or_null(static_cast<std::uint32_t>(id));
}

inline std::int64_t micro_to_nano(std::int64_t us) {
  std::int64_t ns = 0;
  return us == kNotRecorded || __builtin_mul_overflow(us, std::int64_t{1000}, &ns) ? kAbsent : ns;
}

inline ColumnSpec file_column() {
  return {"snapshot", Unit::none, "Number of the file among the snapshots of the run.",
          +[](const Trace& trace, std::size_t) { return trace.memory_file; }, Order::constant};
}

template <class At>
Codes pooled_at(At) {
  return {[](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(At{}(trace, row)); },
          [](const Trace& trace) { return said(trace).strings.size(); },
          [](const Trace& trace, std::uint32_t code) { return said(trace).strings[static_cast<StringId>(code)]; }};
}

inline std::int64_t stream_number(const Trace& trace, std::uint32_t stream) {
  return stream == kNoEntry ? kAbsent : static_cast<std::int64_t>(said(trace).streams[stream]);
}

inline std::int64_t pool_part(const Trace& trace, std::uint32_t pool, bool second) {
  if (pool == kNoEntry) return kAbsent;
  const MemoryPool& one = said(trace).pools[pool];
  return static_cast<std::int64_t>(second ? one.second : one.first);
}

inline constexpr std::string_view kStackMeaning = "Number of the stack in snapshot_frames; null: not recorded.";
inline constexpr std::string_view kStreamMeaning = "Stream, as the allocator calls it; 0: the default one.";

}  // namespace stepscope::tables
