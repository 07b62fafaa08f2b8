// What is derived from all traces of a run together, after each went through derive().
#pragma once

#include "model/trace.h"

namespace stepscope::derive {

// Fills Trace::clock of every trace and Run::matches. The traces must be in the order of their ranks.
void derive_run(Run& run, unsigned threads);

}  // namespace stepscope::derive
