// What the states of memory say is worth a change.
#pragma once

#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::analyze::memory_states {

void find_causes(const Run& run, Answer& answer);

}  // namespace stepscope::analyze::memory_states
