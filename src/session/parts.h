// Recordings that `stepscope run` wrote in several files: parts of a window become one trace again, the step with
// stacks goes to its own place, and of several windows the fullest is opened (docs/run-folder.md).
#pragma once

#include <vector>

#include "model/trace.h"

namespace stepscope::session {

// Written by the hooks of `stepscope run`; to be joined before it is derived.
bool is_part(const Trace& trace);

// Numbers of the steps that its recorder says did not end before the recording did.
std::vector<std::int64_t> cut_steps(const Trace& trace);

// Joins the parts among `traces`, which are not derived yet; everything else stays as it is. What cannot be shown
// together, or is missing, becomes an issue of the run. Traces of stacks are moved into run.stack_steps.
void join_parts(std::vector<Trace>& traces, Run& run);

}  // namespace stepscope::session
