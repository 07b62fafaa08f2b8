#include "session/run_memory.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "read/memory_state.h"

namespace stepscope::session {
namespace fs = std::filesystem;
namespace {

std::set<std::string> files_of(const std::string& run_folder, const Run& run) {
  std::set<std::string> paths;
  for (const Trace& trace : run.traces) {
    if (trace.source.format == kMemoryStateFiles) paths.insert(trace.source.path);
  }
  if (!paths.empty() || run_folder.empty()) return paths;
  std::error_code code;
  for (const auto& folder : fs::directory_iterator(fs::path(run_folder) / "memory_trace", code)) {
    const fs::path file = folder.path() / "memory_state.json";
    if (fs::is_regular_file(file, code)) paths.insert(file.string());
  }
  return paths;
}

// "/runs/a/memory_trace/rank0_dp0_tp0-2/memory_state.json": of a process that was started anew.
void note_repeated_ranks(Run& run) {
  for (std::size_t i = 1; i < run.memory_states.size(); i++) {
    if (run.memory_states[i].rank != run.memory_states[i - 1].rank) continue;
    run.issues.push_back({"memory_states_of_one_rank", Severity::info,
                          "several processes measured their memory as rank " +
                              std::to_string(run.memory_states[i].rank) + "; each is shown",
                          "Give the folder of one of them to see it alone", 1, run.memory_states[i].path, std::nullopt,
                          std::nullopt});
  }
}

}  // namespace

void read_memory_states(const std::string& run_folder, Run& run) {
  for (const std::string& path : files_of(run_folder, run)) {
    Result<MemoryState> state = read::read_memory_state(path);
    if (!state) {
      run.issues.push_back({"memory_state_damaged", Severity::lost, to_text(state.error()), state.error().hint, 1, path,
                            std::nullopt, std::nullopt});
      continue;
    }
    run.issues.insert(run.issues.end(), state->issues.begin(), state->issues.end());
    run.memory_states.push_back(*std::move(state));
  }
  std::stable_sort(run.memory_states.begin(), run.memory_states.end(),
                   [](const MemoryState& a, const MemoryState& b) { return a.rank < b.rank; });
  note_repeated_ranks(run);
}

}  // namespace stepscope::session
