// Where the Python hooks lie, and the environment that brings them into every Python process of the job.
#include <cstdlib>
#include <filesystem>

#include "collect/collect.h"

namespace stepscope::collect {
namespace fs = std::filesystem;
namespace {

bool holds_hooks(const fs::path& folder) {
  std::error_code code;
  return fs::is_regular_file(folder / "sitecustomize.py", code) &&
         fs::is_regular_file(folder / "_stepscope_hooks" / "__init__.py", code);
}

}  // namespace

Result<std::string> find_hooks() {
  std::vector<fs::path> places;
  if (const char* named = std::getenv("STEPSCOPE_HOOKS"); named != nullptr && *named != '\0') {
    places.emplace_back(named);  // and nothing else: a wrong name is to be seen
  } else {
    std::error_code code;
    const fs::path program = fs::read_symlink("/proc/self/exe", code);
    const fs::path folder = program.parent_path();
    places = {folder.parent_path() / "share/stepscope/hooks", folder.parent_path() / "hooks", folder / "hooks"};
    fs::path above = folder;
    for (int i = 0; i < 4 && above.has_relative_path(); ++i, above = above.parent_path()) {
      places.push_back(above / "python/stepscope/hooks");
    }
  }
  std::string looked;
  for (const fs::path& place : places) {
    std::error_code code;
    const fs::path absolute = fs::absolute(place, code);
    if (!code && holds_hooks(absolute)) return absolute.lexically_normal().string();
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  return fail({ErrorKind::not_found,
               "the Python hooks of stepscope were not found (looked in " + looked + ")",
               {},
               {},
               "Set STEPSCOPE_HOOKS to the folder that holds stepscope's sitecustomize.py"});
}

std::map<std::string, std::string> job_environment(const std::string& hooks, const std::string& run_folder,
                                                   const Capture& capture) {
  const char* before = std::getenv("PYTHONPATH");
  const bool empty = before == nullptr || *before == '\0';
  std::string path = hooks;
  if (!empty) path.append(":").append(before);
  std::map<std::string, std::string> extra{
      {"PYTHONPATH", path}, {"STEPSCOPE_RUN", run_folder}, {"STEPSCOPE_CAPTURE", to_text(capture)}};
  // Kineto writes lines about every recording to stderr; they would be the job's only for our sake.
  if (std::getenv("KINETO_LOG_LEVEL") == nullptr) extra["KINETO_LOG_LEVEL"] = "6";
  return extra;
}

}  // namespace stepscope::collect
