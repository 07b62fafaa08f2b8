// What was sampled beside a run: telemetry/*.samples of its folder.
#pragma once

#include <string>

#include "model/trace.h"

namespace stepscope::session {

// Adds the series to the run; what is damaged or lost becomes an issue.
void read_telemetry(const std::string& run_folder, Run& run);

}  // namespace stepscope::session
