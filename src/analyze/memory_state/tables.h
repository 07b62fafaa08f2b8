// The tables of the answer memory_state: categories, trees, steps, the allocator.
#pragma once

#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::analyze::memory_states {

// Those of the list that a state of memory can have, in the order in which they are shown.
inline constexpr std::array kMeasured{MemoryCategory::parameter,       MemoryCategory::buffer,
                                      MemoryCategory::gradient,        MemoryCategory::master_parameter,
                                      MemoryCategory::optimizer_state, MemoryCategory::activation,
                                      MemoryCategory::input,           MemoryCategory::unknown};

Table categories_table(const Run& run);
Table steps_table(const Run& run);
Table devices_table(const Run& run);
// Where figures of an allocator are known: at the point with most allocated of each rank, and at the last.
Table allocator_table(const Run& run);
// Trees at the peak, at the end of the last step, and of each category where it was largest. What is left out of large
// ones, and of many ranks, is told in the notes of the answer.
void add_trees(const Run& run, Answer& answer);

// Bytes of a point on the device of the model.
std::int64_t on_device_of_model(const MemoryState& state, const MemoryPoint& point);

}  // namespace stepscope::analyze::memory_states
