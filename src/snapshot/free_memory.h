// Free memory inside segments at one moment: how much, in how large pieces, and what stands between them.
//
// An allocation fits into one free run of a segment of its own pool, stream and kind (small or large): free memory
// elsewhere does not help it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "snapshot/state.h"

namespace stepscope::snapshot {

// What did not fit.
struct Wanted {
  std::int64_t bytes = 0;  // as a block: rounded
  std::uint32_t stream = kNoEntry, pool = kNoEntry;
};

// Blocks side by side between two free runs, or a stretch that would have to be freed.
struct Between {
  std::int64_t free_bytes = 0;  // beside or between them
  std::int64_t live_bytes = 0;  // of the blocks
  std::uint64_t blocks = 0;
  std::uint32_t largest = kNoEntry;  // row of the largest of them
};

struct FreeMemory {
  std::int64_t reserved = 0, taken = 0;  // taken: by blocks inside segments
  std::int64_t free = 0;                 // reserved and not taken
  std::int64_t largest_run = 0;
  std::uint64_t runs = 0;
  // Of what `wanted` could use; without it, of all.
  std::int64_t usable = 0, largest_usable = 0;
  std::vector<Between> blockers;    // by the free memory that they keep apart, at most kMostBlockers
  std::optional<Between> cheapest;  // the fewest live bytes that would make room for it in one piece
};

inline constexpr std::size_t kMostBlockers = 10;

// False: by the events more lives than the segments hold, so the file contradicts itself, and what is said here of
// reserved and free memory is not so.
inline bool fit_together(const FreeMemory& memory, const LiveBytes& live) { return live.asked <= memory.reserved; }

FreeMemory free_memory(const AllocatorHistory& history, const State& state, const std::optional<Wanted>& wanted);

}  // namespace stepscope::snapshot
