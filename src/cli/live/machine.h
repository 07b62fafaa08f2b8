// What each rank uses of the machine just now, from the newest samples of its telemetry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepscope::cli {

// A head and a line for each of `ranks` that is sampled, in their order; empty where none is.
std::string machine_text(const std::string& run_folder, const std::vector<std::int64_t>& ranks);

}  // namespace stepscope::cli
