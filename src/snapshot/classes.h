// What each allocation is for: its category, where stack, marks and lifetime are evidence of one; else what is known of
// it instead (what was being compiled, the job's own note, a private pool, a marked range); else unknown.
#pragma once

#include "model/allocator_history.h"

namespace stepscope::snapshot {

// Fills Allocations::of_class and AllocatorHistory::classes.
void give_classes(const CudaSnapshot& snapshot, AllocatorHistory& history);

}  // namespace stepscope::snapshot
