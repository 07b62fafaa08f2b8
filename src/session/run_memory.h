// The state of memory of each rank: memory_trace/*/memory_state.json of a run folder, or those that were given.
#pragma once

#include <string>

#include "model/trace.h"

namespace stepscope::session {

// Adds them to the run, by rank; what is damaged becomes an issue. `run_folder` empty: none lies around the traces.
void read_memory_states(const std::string& run_folder, Run& run);

}  // namespace stepscope::session
