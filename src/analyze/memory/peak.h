// What was alive when a device held most.
#pragma once

#include <vector>

#include "analyze/memory/held.h"
#include "analyze/memory/other_stacks.h"

namespace stepscope::analyze::memory {

// Tables at_peak (by operator, phase and use), by_module and by_stack; the bytes of each add up to the peak.
void add_peak(Answer& answer, const std::vector<Held>& all, const OtherStacks& others);

}  // namespace stepscope::analyze::memory
