// What every allocation is used for, by evidence: where it was made, and where it was freed.
//
// Parameters and what else was there before the recording have no allocation in it: they are unknown, with their share.
#pragma once

#include "analyze/memory/held.h"

namespace stepscope::analyze::memory {

std::vector<Use> uses_of(const Held& held);

}  // namespace stepscope::analyze::memory
