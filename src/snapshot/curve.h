// How much is held over the events of a device, and the curve of it that is drawn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/allocator_history.h"
#include "model/answer.h"

namespace stepscope::snapshot {

// Bytes that the program holds at each moment, as it asked for them; static blocks are left out.
std::vector<std::int64_t> held_by_moment(const AllocatorHistory& history, const SnapshotDevice& device);
// Bytes that the allocator holds from the device at each moment; empty where the file says nothing of it.
std::vector<std::int64_t> reserved_by_moment(const AllocatorHistory& history, const SnapshotDevice& device);

// When the moment was, Unix ns: the time of the event that led to it; of moment 0 that of the first event.
// kNotRecorded: the file has no times.
std::int64_t time_of(const CudaSnapshot& snapshot, const SnapshotDevice& device, std::uint32_t moment);
// The last moment whose event is not later; 0: the time lies before all events.
std::uint32_t moment_at(const CudaSnapshot& snapshot, const SnapshotDevice& device, std::int64_t time_us);

// At most about 4 * `pieces` points: of each stretch of events the first, lowest, highest and last. Each point has its
// event and its time. Empty where nothing was recorded.
Series thinned_by_event(std::string name, const CudaSnapshot& snapshot, const SnapshotDevice& device,
                        const std::vector<std::int64_t>& by_moment, std::size_t pieces = 250);

}  // namespace stepscope::snapshot
