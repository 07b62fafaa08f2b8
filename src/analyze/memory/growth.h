// Memory from step to step: whether it grows, and who allocates what is never given back.
#pragma once

#include <vector>

#include "analyze/memory/held.h"

namespace stepscope::analyze::memory {

// Tables steps and growth, finding memory_growth. `stack_steps`: where the recording itself has no Python stacks, the
// step that was recorded with them says from where an operator is called.
void add_growth(Answer& answer, const std::vector<Held>& all, const std::vector<Trace>& stack_steps);

}  // namespace stepscope::analyze::memory
