// The words of a snapshot: keys and values that the reader knows. They are the first texts of the snapshot's pool, so
// that a key is looked up by its id.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/string_pool.h"

namespace stepscope::read::cuda {

enum class Word : std::uint8_t {
  // keys
  action,
  addr,
  device_free,
  size,
  stream,
  time_us,
  frames,
  forward_frames,
  compile_context,
  user_metadata,
  pool_id,
  category,
  filename,
  name,
  line,
  fx_node_op,
  fx_node_name,
  fx_node_target,
  fx_original_trace,
  fx_node_info,
  address,
  requested_size,
  state,
  history,
  real_size,
  device,
  total_size,
  allocated_size,
  active_size,
  segment_type,
  segment_pool_id,
  is_expandable,
  registration_counter,
  blocks,
  stage,
  segments,
  device_traces,
  allocator_settings,
  external_annotations,
  // actions, in the order of AllocatorAction
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,
  snapshot,
  // states
  active_allocated,
  active_pending_free,
  active_awaiting_free,  // as torch's documents call the one above
  inactive,
  count,
};

inline constexpr auto kKeys = static_cast<std::size_t>(Word::alloc);
inline constexpr auto kWords = static_cast<std::size_t>(Word::count);
static_assert(kKeys <= 64, "a set of keys is one number");

inline constexpr std::array<std::string_view, kWords> kSpelled{
    "action",
    "addr",
    "device_free",
    "size",
    "stream",
    "time_us",
    "frames",
    "forward_frames",
    "compile_context",
    "user_metadata",
    "pool_id",
    "category",
    "filename",
    "name",
    "line",
    "fx_node_op",
    "fx_node_name",
    "fx_node_target",
    "fx_original_trace",
    "fx_node_info",
    "address",
    "requested_size",
    "state",
    "history",
    "real_size",
    "device",
    "total_size",
    "allocated_size",
    "active_size",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "registration_counter",
    "blocks",
    "stage",
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
    "active_allocated",
    "active_pending_free",
    "active_awaiting_free",
    "inactive",
};

inline void intern_words(StringPool& empty) {
  for (const std::string_view word : kSpelled) empty.intern(word);
}
// Only of a pool that began with intern_words().
inline Word word_of(StringId id) { return static_cast<std::size_t>(id) < kWords ? static_cast<Word>(id) : Word::count; }
inline std::string_view spelled(Word word) { return kSpelled[static_cast<std::size_t>(word)]; }

// A set of keys.
template <class... Words>
constexpr std::uint64_t keys(Words... words) {
  return ((std::uint64_t{1} << static_cast<unsigned>(words)) | ... | 0);
}

}  // namespace stepscope::read::cuda
