#include "run/nsys.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/command_output.h"

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

constexpr double kLongestExport = 3600;  // seconds; reports of many GB take minutes

bool runs(const fs::path& program) {
  std::error_code code;
  return fs::is_regular_file(program, code) && ::access(program.c_str(), X_OK) == 0;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code code;
  fs::directory_iterator at(folder, code);
  for (; !code && at != fs::directory_iterator(); at.increment(code)) found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::optional<std::string> find_nsys(const std::string& vendor) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && runs(fs::path(folder) / "nsys")) return (fs::path(folder) / "nsys").string();
  }
  std::optional<std::string> newest;  // nsight-systems/2025.1.1/bin/nsys, nsight-systems-cli/2025.1.1/bin/nsys
  for (const fs::path& product : entries(vendor)) {
    if (!product.filename().string().starts_with("nsight-systems")) continue;
    std::vector<fs::path> places = entries(product);
    places.insert(places.begin(), product);
    for (const fs::path& place : places) {
      if (runs(place / "bin" / "nsys")) newest = (place / "bin" / "nsys").string();
    }
  }
  return newest;
}

bool export_report(const std::string& nsys, const std::string& report, const std::string& database) {
  const std::vector<std::string> plain{nsys,   "export", "--type", "sqlite", "-o", database, "--force-overwrite",
                                       "true", "--lazy", "false"};
  // Payloads (message sizes of NCCL) are left out unless asked for; an older nsys does not know the word.
  for (const bool with_payloads : {true, false}) {
    std::vector<std::string> command = plain;
    if (with_payloads) command.emplace_back("--include-blobs=true");
    command.push_back(report);
    std::error_code code;
    if (output_of(command, kLongestExport) && fs::exists(database, code)) return true;
  }
  return false;
}

}  // namespace stepscope::run
