#include "session/run_marks.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "base/whole_file.h"
#include "derive/derive.h"
#include "formats/json_text.h"
#include "model/settings.h"
#include "read/reader.h"
#include "run/living.h"
#include "run/manifest.h"
#include "run/progress.h"
#include "run/tasks.h"

namespace stepscope::session {
namespace fs = std::filesystem;
namespace {

using Members = std::map<std::int64_t, run::RankProgress>;  // by rank

constexpr std::int64_t kLateNs = 10'000'000'000;  // between the last marks of ranks that end together
constexpr std::int64_t kLateStartNs = 5'000'000'000;

std::string numbers(const std::set<std::int64_t>& values) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (const std::int64_t value : values) {
    if (text.size() > kMost * 8) return text + ", …";
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  }
  return text;
}

std::string ranks_text(const std::set<std::int64_t>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + numbers(ranks);
}

void add(Run& run, const std::string& folder, const char* code, Severity severity, std::string sentence,
         std::string advice, std::size_t count) {
  run.issues.push_back(
      {code, severity, std::move(sentence), std::move(advice), count, folder, std::nullopt, std::nullopt});
}

void tell_lost_part(const run::RankProgress& at, const std::string& folder, Run& run) {
  if (!at.recording_since) return;
  const std::int64_t since = *at.recording_since;
  add(run, folder, "part_lost", Severity::lost,
      "rank " + std::to_string(at.rank) + " ended while it recorded: its steps from " + std::to_string(since) + " to " +
          std::to_string(std::max(at.steps - 1, since)) + " are lost",
      "The marks of these steps are kept: stepscope live " + folder, 1);
}

// Of ranks that were started anew, the process that lived last counts; what each lost is told.
Members read_members(const std::string& folder, Run& run) {
  Members members;
  const bool all_ended = run::job_has_ended(folder);  // ranks on other hosts cannot be asked
  for (const std::string& path : run::ring_files(folder)) {
    const auto ring = run::read_ring(path);
    if (!ring) {
      add(run, path, "marks_damaged", Severity::lost, to_text(ring.error()), "", 1);
      continue;
    }
    if (ring->cut > 0) {
      add(run, path, "marks_cut", Severity::lost,
          std::to_string(ring->cut) + " marks of steps are missing: the file was cut short",
          "Copy it again, if it was copied", ring->cut);
    }
    run::RankProgress progress = run::progress_of(*ring, 1);
    if (all_ended) progress.running = false;
    const auto [known, first] = members.try_emplace(ring->rank, progress);
    if (first) continue;
    if (known->second.last_end_ns < progress.last_end_ns) std::swap(known->second, progress);
    tell_lost_part(progress, folder, run);
  }
  return members;
}

void tell_absent(const Members& members, const std::string& folder, Run& run) {
  std::int64_t world_size = 0;
  for (const auto& [rank, at] : members) world_size = std::max(world_size, at.world_size);
  std::set<std::int64_t> absent, untraced;
  for (std::int64_t rank = 0; rank < std::min<std::int64_t>(world_size, 1'000'000); rank++) {
    const bool traced =
        std::any_of(run.traces.begin(), run.traces.end(), [&](const Trace& trace) { return trace.rank.rank == rank; });
    if (!members.contains(rank) && !traced) absent.insert(rank);
    if (members.contains(rank) && !traced) untraced.insert(rank);
  }
  if (!absent.empty()) {
    add(run, folder, "ranks_never_started", Severity::lost,
        std::to_string(absent.size()) + " of " + std::to_string(world_size) +
            " ranks never ended a step: " + ranks_text(absent),
        "Look at their output, and whether their nodes see this folder", absent.size());
  }
  if (!absent.empty()) {  // which says more than that their traces were not given
    std::erase_if(run.issues,
                  [&](const Issue& issue) { return issue.code == "ranks_missing" && issue.count == absent.size(); });
  }
  if (!untraced.empty()) {
    add(run, folder, "ranks_not_recorded", Severity::info,
        "of " + ranks_text(untraced) + " the steps are known, but no trace was recorded",
        "Record all with --ranks all; stepscope live shows their steps", untraced.size());
  }
}

void tell_late(const Members& members, const std::string& folder, Run& run) {
  std::int64_t earliest = 0, latest = 0, late = 0;
  for (const auto& [rank, at] : members) {
    if (at.started_unix_ns <= 0) continue;
    if (earliest == 0 || at.started_unix_ns < earliest) earliest = at.started_unix_ns;
    if (at.started_unix_ns > latest) latest = at.started_unix_ns, late = rank;
  }
  if (latest - earliest < kLateStartNs) return;
  add(run, folder, "rank_late", Severity::info,
      "rank " + std::to_string(late) + " began its steps " + std::to_string((latest - earliest) / 1'000'000'000) +
          " s after the first rank",
      "Compare what it does before: loading, its file system, its node", 1);
}

// Processes that the system or os._exit ended: Python had no moment to say so. The first of them is why, the others
// often follow.
void tell_killed(const Members& members, const std::vector<run::ProcessNote>& notes, const std::string& folder,
                 Run& run) {
  std::set<std::int64_t> killed;
  const run::RankProgress* first = nullptr;
  for (const run::ProcessNote& note : notes) {
    const auto goes_on = [&](const run::ProcessNote& other) {  // as another program, by exec
      return other.ended && other.pid == note.pid && other.host == note.host;
    };
    if (std::any_of(notes.begin(), notes.end(), goes_on)) continue;
    if (!note.is_rank || note.ended || note.detached || !note.rank || run::is_running(note.host, note.pid)) continue;
    const auto at = members.find(*note.rank);
    if (at == members.end() || at->second.pid != note.pid || at->second.left) continue;
    killed.insert(*note.rank);
    if (first == nullptr || at->second.last_end_ns < first->last_end_ns) first = &at->second;
  }
  if (first == nullptr) return;
  add(run, folder, "ranks_killed", Severity::info,
      ranks_text(killed) + (killed.size() == 1 ? " was" : " were") + " killed, or left by os._exit: " +
          (killed.size() == 1 ? "it" : "rank " + std::to_string(first->rank) + " first, which") + " had done " +
          std::to_string(first->steps) + " steps",
      "Look at its output, and for the out-of-memory killer: dmesg | grep -i killed", killed.size());
}

void tell_ends(const Members& members, const std::string& folder, Run& run) {
  std::int64_t newest = 0, most = 0;
  for (const auto& [rank, at] : members) {
    newest = std::max(newest, at.last_end_ns);
    most = std::max(most, at.steps);
  }
  for (const auto& [rank, at] : members) {
    if (!at.running) tell_lost_part(at, folder, run);
    if (!at.left && at.steps + 1 < most && newest - at.last_end_ns > kLateNs) {
      add(run, folder, "rank_ended_early", Severity::lost,
          "rank " + std::to_string(rank) + " ended after " + std::to_string(at.steps) + " steps, " +
              std::to_string((newest - at.last_end_ns) / 1'000'000'000) + " s before the others, which came to " +
              std::to_string(most),
          "Look at its output", 1);
    }
  }
}

// What the hooks noted of a rank, to the marks of its steps.
void take_notes(const std::string& run_folder, std::map<std::int64_t, Trace>& by_rank) {
  std::vector<std::string> unreadable;  // told by add_mark_issues
  for (const run::ProcessNote& note : run::read_process_notes(run_folder, unreadable)) {
    const auto found = by_rank.find(note.rank.value_or(0));
    if (!note.is_rank || found == by_rank.end()) continue;
    std::vector<Metadata>& said = found->second.metadata;
    if (note.batch_size) said.push_back({std::string(kBatchSize), std::to_string(*note.batch_size)});
    if (!note.compilations.empty()) said.push_back({std::string(kCompilations), note.compilations});
    if (!note.given_the_same.empty()) said.push_back({std::string(kGivenTheSame), note.given_the_same});
    if (!note.page_faults.empty()) said.push_back({std::string(kPageFaults), note.page_faults});
    if (!note.page_faults_around.empty()) {
      said.push_back({std::string(kPageFaultsAround), note.page_faults_around});
    }
    if (note.own_profiled_steps <= 0) continue;
    said.push_back({std::string(kOwnProfiledSteps), std::to_string(note.own_profiled_steps)});
    if (note.own_profiler_file.empty()) continue;
    said.push_back({std::string(kOwnProfilerFile), note.own_profiler_file});
    said.push_back({std::string(kOwnProfilerLine), std::to_string(note.own_profiler_line)});
  }
}

}  // namespace

std::string run_folder_of(const std::string& trace_path) {
  const fs::path own = fs::path(trace_path).parent_path();
  std::error_code code;
  if (own.filename() == "telemetry") return own.parent_path().string();
  if (own.filename() == "memory" && fs::exists(own.parent_path() / "run.json", code)) return own.parent_path().string();
  const fs::path traces = own.parent_path();
  const fs::path folder = traces.parent_path();
  if (traces.filename() == "memory_trace" && fs::exists(folder / "run.json", code)) return folder.string();
  return traces.filename() == "traces" && fs::is_directory(folder / "telemetry", code) ? folder.string() : "";
}

std::vector<Trace> read_history(const std::string& run_folder) {
  std::map<std::int64_t, Trace> by_rank;
  for (const std::string& path : run::ring_files(run_folder)) {
    auto traces = read::reader_named("marks")->read(path, {});
    if (!traces || !derive::derive(traces->front(), {})) continue;
    Trace& trace = traces->front();
    if (trace.steps.empty()) continue;
    const auto known = by_rank.find(trace.rank.rank);
    if (known != by_rank.end() && known->second.steps.back().end_ns >= trace.steps.back().end_ns) continue;
    by_rank.insert_or_assign(trace.rank.rank, std::move(trace));
  }
  take_notes(run_folder, by_rank);
  std::vector<Trace> history;
  for (auto& [rank, trace] : by_rank) history.push_back(std::move(trace));
  return history;
}

// What went wrong in the hooks, or why less was recorded than was asked for; once for all ranks that say the same.
void tell_problems(const std::vector<run::ProcessNote>& notes, const std::string& folder, Run& run) {
  std::map<std::string, std::uint64_t> said;
  for (const run::ProcessNote& note : notes) {
    if (!note.first_problem.empty()) said[note.first_problem]++;
  }
  for (const auto& [problem, count] : said) {
    add(run, folder, "recording_problem", Severity::info, "while it was recorded: " + problem,
        "All of them are in hooks.log", count);
  }
}

void add_mark_issues(const std::string& run_folder, Run& run) {
  std::vector<std::string> unreadable;
  const auto notes = run::read_process_notes(run_folder, unreadable);
  tell_problems(notes, run_folder, run);
  const Members members = read_members(run_folder, run);
  if (members.empty()) return;
  tell_absent(members, run_folder, run);
  tell_late(members, run_folder, run);
  tell_ends(members, run_folder, run);
  tell_killed(members, notes, run_folder, run);
}

}  // namespace stepscope::session
