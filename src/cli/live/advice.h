// What to change first, from the newest recording of a run that may still be going on.
#pragma once

#include <string>

namespace stepscope::cli {

// The findings worth most, a line or two each, or why there is none to give. Reads the recordings, which may take a
// core for seconds: only when somebody asks.
std::string newest_advice(const std::string& run_folder);

}  // namespace stepscope::cli
