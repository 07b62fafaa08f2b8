#include "cli/run_paths.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "run/ring.h"
#include "run/tasks.h"

namespace stepscope::cli {
namespace fs = std::filesystem;

Result<std::string> find_run(const std::string& given, const std::string& out) {
  const fs::path folder = given.empty() ? out : given;
  std::error_code code;
  if (fs::exists(folder / "run.json", code)) return folder.string();
  // A run without marks, as of a mistyped command, does not hide the one before it; one that begins does.
  std::tuple<bool, fs::file_time_type, std::string> newest{false, fs::file_time_type::min(), ""};
  for (const fs::path& base : {folder, fs::path(out) / folder}) {
    fs::recursive_directory_iterator at(base, fs::directory_options::skip_permission_denied, code);
    for (; !code && at != fs::recursive_directory_iterator(); at.increment(code)) {
      if (at.depth() >= 2) at.disable_recursion_pending();
      if (at->path().filename() != "run.json") continue;
      std::error_code gone;
      const auto written = fs::last_write_time(at->path(), gone);
      const std::string run = at->path().parent_path().string();
      const bool has_job = !run::ring_files(run).empty() || run::has_open_job(run);
      if (!gone) newest = std::max(newest, {has_job, written, run});
    }
    if (!std::get<std::string>(newest).empty()) return std::get<std::string>(newest);
  }
  return fail({ErrorKind::not_found, "no run was found here", folder.string(), std::nullopt,
               "Start one: stepscope run -- python train.py; or name its folder"});
}

}  // namespace stepscope::cli
