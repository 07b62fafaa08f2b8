#include "cli/run_paths.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace stepscope::cli {
namespace fs = std::filesystem;

Result<std::string> find_run(const std::string& given, const std::string& out) {
  const fs::path folder = given.empty() ? out : given;
  std::error_code code;
  if (fs::exists(folder / "run.json", code)) return folder.string();
  std::pair<fs::file_time_type, std::string> newest{fs::file_time_type::min(), ""};
  for (const fs::path& base : {folder, fs::path(out) / folder}) {
    fs::recursive_directory_iterator at(base, fs::directory_options::skip_permission_denied, code);
    for (; !code && at != fs::recursive_directory_iterator(); at.increment(code)) {
      if (at.depth() >= 2) at.disable_recursion_pending();
      if (at->path().filename() != "run.json") continue;
      std::error_code gone;
      const auto written = fs::last_write_time(at->path(), gone);
      if (!gone) newest = std::max(newest, {written, at->path().parent_path().string()});
    }
    if (!newest.second.empty()) return newest.second;
  }
  return fail({ErrorKind::not_found, "no run was found here", folder.string(), std::nullopt,
               "Start one: stepscope run -- python train.py; or name its folder"});
}

}  // namespace stepscope::cli
