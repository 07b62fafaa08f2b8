// What a report says of the files that a run was read from.
#pragma once

#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::session {

// Adds the inputs, the hosts that they name and their issues.
void add_inputs(Report& report, const Run& run);

}  // namespace stepscope::session
