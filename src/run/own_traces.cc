#include "run/own_traces.h"

#include <filesystem>

namespace stepscope::run {
namespace fs = std::filesystem;

std::size_t take_own_traces(const std::string& run_folder, const std::vector<ProcessNote>& processes,
                            std::vector<std::string>& problems) {
  std::size_t taken = 0;
  for (const ProcessNote& note : processes) {
    for (const OwnTrace& own : note.own_traces) {
      const fs::path target = fs::path(run_folder) / own.trace;
      std::error_code code;
      if (!fs::exists(target, code)) {
        fs::create_directories(target.parent_path(), code);
        fs::create_hard_link(own.path, target, code);
        if (code) fs::copy_file(own.path, target, code);
      }
      if (code) problems.push_back("the job's own trace " + own.path + " was not taken over: " + code.message());
      taken += code ? 0 : 1;
    }
  }
  return taken;
}

}  // namespace stepscope::run
