// The ranges that the program marked (record_function) and the steps that they tell.
#pragma once

#include <functional>
#include <vector>

#include "model/allocator_history.h"

namespace stepscope::snapshot {

// Fills marks, steps and step_source of the device. A START without its END lasts to the end of the trace.
void add_marks(const CudaSnapshot& snapshot, SnapshotDevice& device);

// For each event of the device, by its number, the innermost wanted mark that it lies in, index into device.marks;
// kNoEntry: none. Of marks of one beginning the later one is the inner.
std::vector<std::uint32_t> innermost_marks(const SnapshotDevice& device,
                                           const std::function<bool(const MarkedRange&)>& wanted);

// Is it a mark of a step? Their names are all different and say nothing of what happens in them.
bool is_step_mark(const CudaSnapshot& snapshot, const MarkedRange& mark);

}  // namespace stepscope::snapshot
