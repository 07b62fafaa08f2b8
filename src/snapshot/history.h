// The history of a memory snapshot: allocations, held memory, marks, steps and classes (model/allocator_history.h).
//
// A trace is a ring: its first event finds memory in use. What was there is told by the end: blocks that are alive at
// the end and that no event allocated, frees of addresses that nothing allocated, and the segments, walked backwards.
#pragma once

#include "model/allocator_history.h"

namespace stepscope::snapshot {

// Never fails; what does not fit together is counted in HistoryFaults.
AllocatorHistory history_of(const CudaSnapshot& snapshot);

// The counts of all devices as issues of the file.
std::vector<Issue> issues_of(const CudaSnapshot& snapshot, const AllocatorHistory& history);

}  // namespace stepscope::snapshot
