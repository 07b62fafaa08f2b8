// The memory of a device at one moment: what lives, and what the allocator holds.
#pragma once

#include <vector>

#include "model/allocator_history.h"

namespace stepscope::snapshot {

// Memory that the allocator holds in one piece. What an expandable segment has mapped side by side is one.
struct Segment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::uint32_t stream = kNoEntry, pool = kNoEntry;
  std::int8_t expandable = -1, small = -1;
};

struct State {
  std::uint32_t moment = 0;
  std::vector<std::uint32_t> rows;  // allocations that live, by address
  std::vector<Segment> segments;    // by address
};

// One pass over the allocations of the device, and a sort of what lives: 20 ms for 10^6 allocations.
State state_at(const AllocatorHistory& history, const SnapshotDevice& device, std::uint32_t moment);

// Sums of the allocations that live.
struct LiveBytes {
  std::int64_t asked = 0;    // by the program
  std::int64_t blocks = 0;   // that they take
  std::int64_t pending = 0;  // of `blocks`: freed by the program, and still used by a stream
};
LiveBytes live_bytes(const AllocatorHistory& history, const State& state);

}  // namespace stepscope::snapshot
