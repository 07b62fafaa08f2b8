// How long each call of a module took in forward.
//
// With device work it is from the start of the first kernel, copy or fill that was launched within the call to the end
// of the last one: what a stop of the device before and after the call would have shown, without one. A call without
// device work took its time on the host.
#pragma once

#include <optional>
#include <vector>

#include "model/trace.h"

namespace stepscope::analyze::flops {

// Per row of Trace::modules, ns; nothing: it ran in a backward pass, as a forward that runs again does.
std::vector<std::optional<std::int64_t>> forward_times(const Trace& trace);

}  // namespace stepscope::analyze::flops
