// Memory from step to step: whether it grows, and who allocates what is never given back.
#pragma once

#include <vector>

#include "analyze/memory/held.h"
#include "analyze/memory/other_stacks.h"

namespace stepscope::analyze::memory {

// Tables steps and growth, finding memory_growth.
void add_growth(Answer& answer, const std::vector<Held>& all, const OtherStacks& others);

}  // namespace stepscope::analyze::memory
