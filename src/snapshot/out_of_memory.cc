#include "snapshot/out_of_memory.h"

#include <algorithm>

#include "snapshot/byte_sums.h"
#include "snapshot/rounding.h"

namespace stepscope::snapshot {
namespace {

// The default pool, where the file knows of pools.
std::uint32_t default_pool(const CudaSnapshot& snapshot) {
  for (std::uint32_t i = 0; i < snapshot.pools.size(); i++) {
    if (snapshot.pools[i] == MemoryPool{}) return i;
  }
  return kNoEntry;
}

// Of a device whose size is not known, what its driver had and what the allocator held is all that can be told.
bool is_beyond(const OutOfMemory& oom) {
  if (oom.device_bytes) return oom.wanted_bytes > *oom.device_bytes;
  return oom.memory.reserved > 0 && oom.device_free != kNotRecorded &&
         oom.wanted_bytes > plus(oom.memory.reserved, oom.device_free);
}

OomCause cause_of(const OutOfMemory& oom) {
  const FreeMemory& memory = oom.memory;
  if (is_beyond(oom)) return OomCause::beyond;
  if (memory.reserved == 0) return OomCause::unclear;
  if (memory.largest_usable >= oom.wanted_bytes) return OomCause::unclear;
  const std::int64_t at_driver = oom.device_free == kNotRecorded ? 0 : oom.device_free;
  // More than a context and libraries take.
  constexpr std::int64_t kContext = std::int64_t{1} << 30;
  if (at_driver - kContext >= oom.wanted_bytes) return OomCause::limited;
  if (plus(memory.usable, at_driver) >= oom.wanted_bytes) return OomCause::fragmented;
  if (plus(memory.free, at_driver) >= oom.wanted_bytes) return OomCause::elsewhere;
  const std::int64_t missing = oom.wanted_bytes - plus(memory.usable, at_driver);
  if (oom.outside_bytes && *oom.outside_bytes - kContext >= missing) return OomCause::outside;
  return OomCause::full;
}

}  // namespace

std::string_view to_string(OomCause cause) {
  switch (cause) {
    case OomCause::fragmented: return "fragmented";
    case OomCause::elsewhere: return "free elsewhere";
    case OomCause::outside: return "held outside of torch";
    case OomCause::limited: return "limited";
    case OomCause::beyond: return "more than the device";
    case OomCause::full: return "full";
    case OomCause::unclear: break;
  }
  return "unclear";
}

OutOfMemory out_of_memory(const CudaSnapshot& snapshot, const AllocatorHistory& history, const SnapshotDevice& device,
                          std::uint32_t event, std::optional<std::int64_t> device_bytes) {
  const std::uint32_t row = device.events.first + event;
  const AllocatorEvents& events = snapshot.events;
  OutOfMemory oom{.event = event, .stack = events.stack[row], .device_bytes = device_bytes};
  oom.wanted_bytes = events.size_bytes[row] == kNotRecorded ? 0 : Rounding(snapshot).rounded(events.size_bytes[row]);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;  // no device has as much: the number is damaged
  if (events.address[row] < kMost) oom.device_free = static_cast<std::int64_t>(events.address[row]);
  oom.state = state_at(history, device, event);
  oom.live = live_bytes(history, oom.state);
  const std::uint32_t context = events.context[row];
  const std::uint32_t pool = context == kNoEntry ? kNoEntry : snapshot.contexts[context].pool;
  oom.memory =
      free_memory(history, oom.state,
                  Wanted{oom.wanted_bytes, events.stream[row], pool == kNoEntry ? default_pool(snapshot) : pool});
  if (!fit_together(oom.memory, oom.live)) oom.memory = {};
  if (device_bytes && oom.device_free != kNotRecorded && oom.memory.reserved > 0) {
    oom.outside_bytes = std::max<std::int64_t>(0, *device_bytes - plus(oom.memory.reserved, oom.device_free));
  }
  oom.cause = cause_of(oom);
  return oom;
}

}  // namespace stepscope::snapshot
