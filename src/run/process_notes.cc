// Reads what the hooks left in processes/: small JSON files, written by another program, so nothing in them is trusted.
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "run/living.h"
#include "run/manifest.h"
#include "run/schema_version.h"

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLargestNote = 4 << 20;

std::string text_of(simdjson::dom::element note, const char* key) {
  std::string_view text;
  return note[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

void take_windows(simdjson::dom::element note, ProcessNote& out) {
  for (const char* apart : {"replaced_cost_s", "other_cost_s"}) {
    double seconds = 0;
    if (note[apart].get(seconds) == simdjson::SUCCESS && seconds > 0) out.cost_s += seconds;
  }
  simdjson::dom::array windows;
  if (note["windows"].get(windows) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element window : windows) {
    ProcessNote::Part& part = out.parts.emplace_back(ProcessNote::Part{text_of(window, "trace"), {}});
    if (!part.trace.empty()) out.traces.push_back(part.trace);
    for (const char* what : {"start", "stop", "export"}) {
      double seconds = 0;
      if (window["cost_s"][what].get(seconds) == simdjson::SUCCESS && seconds > 0) out.cost_s += seconds;
    }
    if (text_of(window, "kind") == "stacks") continue;
    simdjson::dom::array steps;
    if (window["steps"].get(steps) != simdjson::SUCCESS) continue;
    for (const simdjson::dom::element step : steps) {
      std::int64_t number = 0;
      if (step.get(number) != simdjson::SUCCESS) continue;
      ++out.whole_steps;
      part.steps.push_back(number);
      out.first_step = std::min(out.first_step.value_or(number), number);
      out.last_step = std::max(out.last_step.value_or(number), number);
    }
  }
}

// A note is a file that anybody may have written: what it names stays below traces/.
void take_own_traces(simdjson::dom::element note, ProcessNote& out) {
  simdjson::dom::array traces;
  if (note["own_traces"].get(traces) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element one : traces) {
    OwnTrace trace{text_of(one, "path"), text_of(one, "trace")};
    const bool below = trace.trace.starts_with("traces/") && trace.trace.find("..") == std::string::npos;
    if (!trace.path.empty() && below) out.own_traces.push_back(std::move(trace));
  }
}

ProcessNote to_note(simdjson::dom::element note) {
  ProcessNote out;
  out.json = simdjson::minify(note);
  out.is_rank = text_of(note, "role") == "rank";
  out.device = text_of(note, "device");
  if (std::int64_t rank = 0; note["rank"].get(rank) == simdjson::SUCCESS) out.rank = rank;
  out.refused = text_of(note, "refused");
  if (note["steps_seen"].get(out.steps_seen) != simdjson::SUCCESS) out.steps_seen = 0;
  if (note["own_profiler"].get(out.own_profiler) != simdjson::SUCCESS) out.own_profiler = false;
  if (note["own_profiled_steps"].get(out.own_profiled_steps) != simdjson::SUCCESS) out.own_profiled_steps = 0;
  std::string_view file;
  if (note.at_pointer("/own_profiler_at/0").get(file) == simdjson::SUCCESS &&
      note.at_pointer("/own_profiler_at/1").get(out.own_profiler_line) == simdjson::SUCCESS) {
    out.own_profiler_file = std::string(file);
  }
  if (simdjson::dom::array rows; note["compilations"].get(rows) == simdjson::SUCCESS) {
    out.compilations = simdjson::minify(rows);
  }
  if (simdjson::dom::array rows; note["given_the_same"].get(rows) == simdjson::SUCCESS) {
    out.given_the_same = simdjson::minify(rows);
  }
  if (simdjson::dom::array counts; note["page_faults"].get(counts) == simdjson::SUCCESS) {
    out.page_faults = simdjson::minify(counts);
  }
  if (simdjson::dom::object counts; note["page_faults_around"].get(counts) == simdjson::SUCCESS) {
    out.page_faults_around = simdjson::minify(counts);
  }
  take_own_traces(note, out);
  if (note["detached"].get(out.detached) != simdjson::SUCCESS) out.detached = false;
  if (note["ended"].get(out.ended) != simdjson::SUCCESS) out.ended = true;
  simdjson::dom::array problems;
  if (note["problems"].get(problems) == simdjson::SUCCESS) {
    std::string_view first;
    if (problems.size() > 0 && problems.at(0).get(first) == simdjson::SUCCESS) out.first_problem = std::string(first);
  }
  if (std::int64_t size = 0; note["data_loading"]["batch_size"].get(size) == simdjson::SUCCESS) out.batch_size = size;
  out.host = text_of(note, "host");
  if (note["pid"].get(out.pid) != simdjson::SUCCESS) out.pid = 0;
  if (note["finishing_pid"].get(out.finishing_pid) != simdjson::SUCCESS) out.finishing_pid = 0;
  if (out.finishing_pid != 0 && out.first_problem.empty()) out.first_problem = text_of(note, "finishing_problem");
  simdjson::dom::object requests;
  if (note["requests"].get(requests) == simdjson::SUCCESS) {
    for (const auto& [name, how] : requests) {
      std::string_view text;
      if (how.get(text) == simdjson::SUCCESS) out.requests.emplace(name, text);
    }
  }
  take_windows(note, out);
  return out;
}

}  // namespace

std::string cost_text(double cost_s) {
  constexpr double kWorthSaying = 1;
  if (cost_s < kWorthSaying) return "";
  return "; starting, stopping and writing took the job " + std::to_string(std::lround(cost_s)) + " s";
}

std::vector<ProcessNote> settled_process_notes(const std::string& run_folder, double patience_s,
                                               std::vector<std::string>& problems) {
  constexpr double kPauseS = 0.02;
  for (;; patience_s -= kPauseS) {
    std::vector<std::string> new_problems;
    std::vector<ProcessNote> notes = read_process_notes(run_folder, new_problems);
    const bool finishing = std::any_of(notes.begin(), notes.end(),
                                       [](const ProcessNote& note) { return process_exists(note.finishing_pid); });
    if (!finishing || patience_s <= 0) {
      problems.insert(problems.end(), new_problems.begin(), new_problems.end());
      return notes;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(kPauseS));
  }
}

std::vector<ProcessNote> read_process_notes(const std::string& run_folder, std::vector<std::string>& problems) {
  std::vector<std::string> paths;
  std::error_code code;
  fs::directory_iterator at(fs::path(run_folder) / "processes", code);
  for (; !code && at != fs::directory_iterator(); at.increment(code)) {
    if (at->path().extension() == ".json") paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ProcessNote> notes;
  simdjson::dom::parser parser;
  for (const std::string& path : paths) {
    simdjson::dom::element note;
    const bool small = fs::file_size(path, code) <= kLargestNote && !code;
    if (!small || parser.load(path).get(note) != simdjson::SUCCESS || !note.is_object()) {
      problems.push_back("the note " + fs::path(path).filename().string() + " is no JSON object");
      continue;
    }
    std::int64_t version = 0;
    if (note["schema_version"].get(version) == simdjson::SUCCESS && version > kNoteVersion) {
      problems.push_back(newer_schema("the note " + fs::path(path).filename().string(), version, kNoteVersion));
    }
    notes.push_back(to_note(note));
    notes.back().file = fs::path(path).lexically_relative(run_folder).string();
  }
  return notes;
}

}  // namespace stepscope::run
