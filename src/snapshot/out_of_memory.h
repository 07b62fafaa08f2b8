// Why memory ran out: what was wanted, what was free, where, and in which pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "snapshot/free_memory.h"

namespace stepscope::snapshot {

enum class OomCause : std::uint8_t {
  fragmented,  // enough was free for it, in pieces
  elsewhere,   // enough with what is free in other pools or on other streams
  outside,     // what others than torch's allocator hold of the device is what was missing
  limited,     // the driver had enough, and torch did not take it
  beyond,      // more than the whole device, as far as its size is known
  full,        // all is in use
  unclear,     // a free run was large enough, or nothing is known of segments
};
std::string_view to_string(OomCause cause);

struct OutOfMemory {
  std::uint32_t event = 0;  // number
  std::int64_t wanted_bytes = 0;
  std::int64_t device_free = kNotRecorded;  // that the driver still had
  StackId stack = StackId::none;
  State state;  // before it
  LiveBytes live;
  FreeMemory memory;                          // nothing of it where segments and events do not fit together
  std::optional<std::int64_t> device_bytes;   // memory of the device, where it is known
  std::optional<std::int64_t> outside_bytes;  // held by others than torch's allocator, where the device's size is known
  OomCause cause = OomCause::unclear;
};

// `device_bytes`: memory of the device, where it is known.
OutOfMemory out_of_memory(const CudaSnapshot& snapshot, const AllocatorHistory& history, const SnapshotDevice& device,
                          std::uint32_t event, std::optional<std::int64_t> device_bytes);

}  // namespace stepscope::snapshot
