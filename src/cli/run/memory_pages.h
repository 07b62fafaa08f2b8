// At the end of `stepscope run --memory`: the five pages of each rank, beside what it measured.
#pragma once

#include <string>
#include <vector>

namespace stepscope::cli {

// Of the ranks in the folder of the run that were on this host and have none yet; of many the first. What goes wrong is
// added to `problems`.
void make_memory_pages(const std::string& run_folder, const std::string& host, std::vector<std::string>& problems);

// Folders of ranks whose memory was measured.
std::vector<std::string> memory_traces(const std::string& run_folder);

}  // namespace stepscope::cli
