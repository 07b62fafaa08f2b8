// Runs a command of the machine and takes its output, with a limit in time: nothing must hang on a sick driver.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope {

// What the command writes to its standard output (at most 64 kB of it); an Error when it cannot be started, fails or
// outlives `seconds`.
Result<std::string> output_of(const std::vector<std::string>& command, double seconds);

}  // namespace stepscope
