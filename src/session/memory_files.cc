#include "session/memory_files.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "run/manifest.h"
#include "session/ranks.h"
#include "session/run_marks.h"
#include "snapshot/history.h"

namespace stepscope::session {
namespace fs = std::filesystem;
namespace {

// "rank-3_step-100_snapshot.pickle" → 100; -1: the name has no step.
std::int64_t step_in_name(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t at = name.find("_step-");
  std::int64_t step = -1;
  if (at != name.npos) std::from_chars(name.data() + at + 6, name.data() + name.size(), step);
  return step;
}

bool is_at_oom(const InputFile& file) { return fs::path(file.path).filename().string().starts_with("oom_"); }

// The rank whose process wrote "HOST_PID.TIME.pickle", as its note says.
std::optional<std::int64_t> rank_in_notes(const std::string& path, const std::vector<run::ProcessNote>& notes) {
  const std::string name = fs::path(path).filename().string();
  for (const run::ProcessNote& note : notes) {
    if (note.is_rank && name.starts_with(note.host + "_" + std::to_string(note.pid) + ".")) return note.rank;
  }
  return std::nullopt;
}

void find_ranks(std::vector<Trace>& snapshots) {
  std::map<std::string, std::vector<run::ProcessNote>> notes;  // by run folder
  std::vector<std::string> unreadable;                         // told by add_mark_issues
  for (Trace& one : snapshots) {
    auto rank = rank_in_name(fs::path(one.source.path).filename().string());
    const std::string folder = run_folder_of(one.source.path);
    if (!rank && !folder.empty()) {
      const auto [known, is_new] = notes.try_emplace(folder);
      if (is_new) known->second = run::read_process_notes(folder, unreadable);
      rank = rank_in_notes(one.source.path, known->second);
    }
    if (!rank) rank = rank_in_name(one.source.path);
    if (!rank) continue;
    one.rank.rank = *rank;
    one.rank.source = RankSource::file_name;
  }
}

}  // namespace

bool is_memory_file(const InputFile& file) {
  return file.reader->name == "cuda_snapshot" || file.reader->name == "memory_timeline";
}

void keep_newest_snapshots(std::vector<InputFile>& files, std::vector<Issue>& issues) {
  struct Newest {
    std::pair<std::int64_t, fs::file_time_type> when;
    std::string path;
  };
  std::map<std::pair<std::string, std::int64_t>, Newest> newest;  // by run folder and rank
  const auto is_regular = [](const InputFile& file) {
    return file.found && is_memory_file(file) && !is_at_oom(file) && !run_folder_of(file.path).empty() &&
           step_in_name(file.path) >= 0;
  };
  const auto owner = [](const InputFile& file) {
    return std::pair(run_folder_of(file.path), rank_in_name(fs::path(file.path).filename().string()).value_or(-1));
  };
  std::size_t regular = 0;
  for (const InputFile& file : files) {
    if (!is_regular(file)) continue;
    regular++;
    std::error_code ignored;
    const std::pair when(step_in_name(file.path), fs::last_write_time(file.path, ignored));
    const auto [known, is_first] = newest.try_emplace(owner(file), Newest{when, file.path});
    if (!is_first && known->second.when < when) known->second = {when, file.path};
  }
  if (regular == newest.size()) return;
  const std::string first = newest.begin()->second.path;
  std::erase_if(files,
                [&](const InputFile& file) { return is_regular(file) && newest.at(owner(file)).path != file.path; });
  issues.push_back(
      {"other_snapshots", Severity::info,
       "of " + std::to_string(regular) + " memory snapshots the newest of each rank was opened: " + first,
       "Name the others to open them: stepscope memory " + fs::path(first).parent_path().string() + "/*.pickle",
       regular - newest.size(), first, std::nullopt, std::nullopt});
}

void add_snapshot_history(Trace& trace) {
  if (trace.snapshot == nullptr) return;
  auto history = std::make_shared<AllocatorHistory>(snapshot::history_of(*trace.snapshot));
  for (Issue& issue : snapshot::issues_of(*trace.snapshot, *history)) trace.issues.push_back(std::move(issue));
  trace.snapshot_history = std::move(history);
}

void settle_snapshots(Run& run) {
  const auto first = std::stable_partition(run.traces.begin(), run.traces.end(),
                                           [](const Trace& trace) { return !trace.only_memory(); });
  run.snapshots.assign(std::make_move_iterator(first), std::make_move_iterator(run.traces.end()));
  run.traces.erase(first, run.traces.end());
  find_ranks(run.snapshots);
  std::set<std::int64_t> taken;
  for (const Trace& one : run.snapshots) {
    if (one.rank.source != RankSource::order) taken.insert(one.rank.rank);
  }
  for (Trace& one : run.snapshots) {
    if (one.rank.source != RankSource::order) continue;
    one.rank.rank = 0;
    while (!taken.insert(one.rank.rank).second) one.rank.rank++;
  }
  std::stable_sort(run.snapshots.begin(), run.snapshots.end(),
                   [](const Trace& a, const Trace& b) { return a.rank.rank < b.rank.rank; });
  for (std::size_t i = 0; i < run.snapshots.size(); i++) run.snapshots[i].memory_file = static_cast<std::int64_t>(i);
}

}  // namespace stepscope::session
