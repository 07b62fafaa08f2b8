#include "session/parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "formats/json_text.h"
#include "model/append_trace.h"

namespace stepscope::session {
namespace {

constexpr std::string_view kMember = "stepscope";

// What the trace's own metadata says: {"process": …, "window": n, "part": n, "kind": …, "steps": […]}
struct Note {
  std::string process, kind;
  long long window = -1, part = -1;
  std::string steps;  // the numbers between the brackets
  std::size_t step_count = 0;
};

std::optional<Note> note_of(const Trace& trace) {
  const auto found = std::find_if(trace.metadata.begin(), trace.metadata.end(),
                                  [](const Metadata& entry) { return entry.key == kMember; });
  if (found == trace.metadata.end() || !found->json.starts_with('{')) return std::nullopt;
  Note note;
  for (const auto& [key, raw_key, value] : formats::members(found->json)) {
    if (key == "process") note.process = formats::value_text(value);
    if (key == "kind") note.kind = formats::value_text(value);
    if (key == "window") note.window = formats::value_int(value, -1);
    if (key == "part") note.part = formats::value_int(value, -1);
    if (key == "steps" && value.size() > 2 && value.front() == '[') {
      note.steps = std::string(value.substr(1, value.size() - 2));
      note.step_count = static_cast<std::size_t>(std::count(note.steps.begin(), note.steps.end(), ',')) + 1;
    }
  }
  return note.process.empty() || note.window < 0 || note.part < 0 ? std::nullopt : std::optional(std::move(note));
}

struct Part {
  Note note;
  Trace trace;
};

// One window of one process, its parts in order.
struct Recording {
  std::vector<Part> parts;
  std::size_t steps() const {
    std::size_t all = 0;
    for (const Part& part : parts) all += part.note.step_count;
    return all;
  }
};

std::string missing_parts(const Recording& recording) {
  std::string missing;
  long long next = 0;
  for (const Part& part : recording.parts) {
    for (; next < part.note.part && missing.size() < 60; next++) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(next);
    }
    next = part.note.part + 1;
  }
  return missing;
}

Trace joined(Recording recording, Run& run) {
  std::sort(recording.parts.begin(), recording.parts.end(),
            [](const Part& a, const Part& b) { return a.note.part < b.note.part; });
  Trace trace = std::move(recording.parts.front().trace);
  if (const std::string missing = missing_parts(recording); !missing.empty()) {
    run.issues.push_back({"parts_missing", Severity::lost, "the recording lacks its parts " + missing,
                          "The job or its node was stopped while they were written, or the files were not copied", 1,
                          trace.source.path, std::nullopt, std::nullopt});
  }
  for (std::size_t i = 1; i < recording.parts.size(); i++) append_trace(trace, recording.parts[i].trace);
  return trace;
}

// Windows of one process are minutes apart: shown together, the pause between them would count as idle.
Recording chosen_window(std::vector<Recording> windows, Run& run) {
  const auto fullest = std::max_element(windows.begin(), windows.end(), [](const Recording& a, const Recording& b) {
    return std::pair(a.steps(), a.parts.front().note.window) < std::pair(b.steps(), b.parts.front().note.window);
  });
  if (windows.size() > 1) {
    const Part& shown = fullest->parts.front();
    std::string others;
    for (const Recording& window : windows) {
      if (&window == &*fullest) continue;
      others += (others.empty() ? "" : ", ") + window.parts.front().trace.source.path;
    }
    run.issues.push_back({"other_windows", Severity::info,
                          "the process recorded " + std::to_string(windows.size()) + " windows; the one with steps " +
                              shown.note.steps + " was opened",
                          "Give the file of another window to open that one: " + others, windows.size() - 1,
                          shown.trace.source.path, std::nullopt, std::nullopt});
  }
  return std::move(*fullest);
}

}  // namespace

bool is_part(const Trace& trace) { return note_of(trace).has_value(); }

void join_parts(std::vector<Trace>& traces, Run& run) {
  std::vector<Trace> others;
  std::map<std::string, std::map<long long, Recording>> processes;
  for (Trace& trace : traces) {
    std::optional<Note> note = note_of(trace);
    if (!note) {
      others.push_back(std::move(trace));
    } else if (note->kind == "stacks") {
      run.stack_steps.push_back(std::move(trace));
    } else {
      Recording& window = processes[note->process][note->window];
      window.parts.push_back({*std::move(note), std::move(trace)});
    }
  }
  for (auto& [process, by_window] : processes) {
    std::vector<Recording> windows;
    for (auto& [number, window] : by_window) windows.push_back(std::move(window));
    others.push_back(joined(chosen_window(std::move(windows), run), run));
  }
  if (others.empty()) others.swap(run.stack_steps);  // asked for by name: then its times are what there is
  traces = std::move(others);
}

}  // namespace stepscope::session
