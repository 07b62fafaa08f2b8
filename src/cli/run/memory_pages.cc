#include "cli/run/memory_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "report/memory_pages.h"
#include "session/session.h"

namespace stepscope::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostRanks = 16;  // five pages each, some 200 kB

Result<Run> open_state(const std::string& folder) {
  session::OpenOptions options;
  options.use_cache = false;
  const std::string path = folder + "/memory_state.json";
  return session::open(std::span(&path, 1), options);
}

Result<void> make_pages(const Run& run, const std::string& folder) {
  const std::string name = "memory_state";
  const auto report = session::answer(run, std::span(&name, 1));
  if (!report) return fail(report.error());
  return report::write_memory_pages(*report, folder);
}

bool has_pages(const std::string& folder) {
  const auto names = report::memory_page_names();
  std::error_code code;
  return std::all_of(names.begin(), names.end(),
                     [&](std::string_view name) { return fs::exists(fs::path(folder) / name, code); });
}

}  // namespace

std::vector<std::string> memory_traces(const std::string& run_folder) {
  std::vector<std::string> found;
  std::error_code code;
  for (const auto& folder : fs::directory_iterator(fs::path(run_folder) / "memory_trace", code)) {
    if (fs::exists(folder.path() / "memory_state.json", code)) found.push_back(folder.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void make_memory_pages(const std::string& run_folder, const std::string& host, std::vector<std::string>& problems) {
  std::size_t made = 0, left = 0;
  for (const std::string& folder : memory_traces(run_folder)) {
    if (has_pages(folder)) continue;
    const auto run = open_state(folder);
    if (run && !run->memory_states.empty() && !run->memory_states.front().host.starts_with(host)) continue;
    if (made == kMostRanks) {
      left++;
      continue;
    }
    made++;
    if (const Result<void> done = run ? make_pages(*run, folder) : fail(run.error()); !done) {
      problems.push_back(
          fmt::format("the pages of memory were not made: {}; later: stepscope report {} --only "
                      "memory_state --html {}",
                      to_text(done.error()), folder, folder));
      return;
    }
  }
  if (left > 0) {
    problems.push_back(
        fmt::format("pages of memory were made of {} ranks, not of {} more; of a rank: stepscope report "
                    "FOLDER --only memory_state --html FOLDER",
                    made, left));
  }
}

}  // namespace stepscope::cli
