// The events of one device, walked once: which allocation lived when, and what the allocator held when.
#pragma once

#include <span>

#include "model/allocator_history.h"

namespace stepscope::snapshot {

// Adds the allocations of the device to the history. `device.number` and `device.events` are set; `segments`: rows of
// the snapshot's segments that are of the device.
void add_allocations(const CudaSnapshot& snapshot, std::span<const std::uint32_t> segments, SnapshotDevice& device,
                     AllocatorHistory& history);

// Adds what the allocator held, from the segments at the end backwards.
void add_ranges(const CudaSnapshot& snapshot, std::span<const std::uint32_t> segments, SnapshotDevice& device,
                AllocatorHistory& history);

// Fills Allocations::block_bytes and those pools that the ranges tell, by the rules by which torch's allocator rounds
// sizes and splits blocks. Blocks that are there at the end are as the snapshot says.
void size_blocks(const CudaSnapshot& snapshot, const SnapshotDevice& device, AllocatorHistory& history);

}  // namespace stepscope::snapshot
