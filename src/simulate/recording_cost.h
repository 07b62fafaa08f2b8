// What recording cost the host: it notes when each operator begins and ends, and the job's other steps, which nobody
// recorded, are shorter by that. They also show how long the phases usually take that are no work of the model.
//
// A step of ten thousand small operators may take a third longer while it is recorded, and what is no operator does
// not: priced as recorded, everything beside the operators would seem worth less than it is.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "simulate/play.h"

namespace stepscope::simulate {

struct RecordingCost {
  std::vector<std::int64_t> node_ns;  // per node: how much of its cost; below 0: it is usually longer; empty: not known
  double usual_ns = 0;                // a usual step, of the phases that the window has; 0: not known
  std::vector<StepId> long_steps;     // recorded ones of a kind that comes less often, and counts as often as it comes
};

// Of the rank of `window`, from the marks of all steps (Run::history). `hidden_ns`: what recording cost in the whole
// window and did not make its steps longer by, since the host would else have waited for a device.
RecordingCost recording_cost(const Run& run, const ReplayGraph& graph, const StepWindow& window, double hidden_ns = 0);

}  // namespace stepscope::simulate
