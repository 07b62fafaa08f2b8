// Traces that a job wrote with a profiler of its own: torch has room for one, so theirs are the recording.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run/manifest.h"

namespace stepscope::run {

// Puts those that the notes name into the run folder, by links where the file system allows it; the job's files stay
// where they are. How many are there now; what could not be taken is said in `problems`.
std::size_t take_own_traces(const std::string& run_folder, const std::vector<ProcessNote>& processes,
                            std::vector<std::string>& problems);

}  // namespace stepscope::run
