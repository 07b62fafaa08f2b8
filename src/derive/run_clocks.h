// One clock for a run: sets Trace::clock of every trace.
#pragma once

#include <span>

#include "derive/comm_calls.h"

namespace stepscope::derive {

// `calls` of each trace of the run, with lanes numbered alike in all of them.
void set_clocks(Run& run, std::span<const CommCalls> calls, unsigned threads);

}  // namespace stepscope::derive
