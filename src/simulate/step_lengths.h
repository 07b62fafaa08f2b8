// Recorded steps beside the usual ones of their length: what one is far longer or shorter by is none of recording.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "simulate/play.h"
#include "simulate/usual_step.h"

namespace stepscope::simulate {

// One rank without a device: then its thread does all that its steps take.
bool is_alone(const Run& run, const StepWindow& window);
// The thread of the steps, and those on which its backward passes run: one waits while another works.
std::vector<std::uint32_t> lanes_of_steps(const ReplayGraph& graph, const StepWindow& window);

// `work`: the nodes of the window that are of no uneven phase. `node_ns`: per node what is taken off its cost so far;
// below 0 is added. `phases_known`: the marks have the uneven phases that the recording has.

// What holds up one recorded step, and is in no other: the machine did something else. A step that is far longer than
// the one of its length among usual steps, by more than recording makes the others longer, loses so much of the
// operators of torch that are longer there: these do the same in each step that has them, where code of the program may
// not.
void take_off_hold_ups(const Run& run, const ReplayGraph& graph, const StepWindow& window, const UsualStep& usual,
                       const std::vector<std::uint32_t>& work, std::vector<std::int64_t>& node_ns);

// A step that is far off the one of its length among usual steps is made as long as that. Where code has
// most of a step, the difference is its. Else it is that of what differs from step to step; not where ranks wait for
// others.
void make_usual(const Run& run, const ReplayGraph& graph, const StepWindow& window, const UsualStep& usual,
                const std::vector<std::uint32_t>& work, bool phases_known, std::vector<std::int64_t>& node_ns);

}  // namespace stepscope::simulate
