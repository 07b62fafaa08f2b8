// Waits for a core in the recorded steps: the thread could run, and others on the machine had all cores.
//
// The kernel counts them for each step, and not where in it they were: a piece of the step seems to have taken as long.
// It is told by the other steps, in which the same piece was shorter.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "simulate/play.h"

namespace stepscope::simulate {

// Adds to `node_ns`, how much of the cost of each node is none of the job's own, what the main thread of the rank of
// `window` waited. What no piece is longer for stays, and so does all of a single step.
void take_off_core_waits(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                         std::vector<std::int64_t>& node_ns);

}  // namespace stepscope::simulate
