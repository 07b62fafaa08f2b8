#include "session/parts.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "formats/json_text.h"
#include "model/append_trace.h"
#include "model/settings.h"

namespace stepscope::session {
namespace {

constexpr std::string_view kMember = "stepscope";
constexpr std::size_t kShownOthers = 8;  // files that an issue names

// What the trace's own metadata says: {"process": …, "window": n, "part": n, "kind": …, "steps": […]}
struct Note {
  std::string process, kind;
  std::string thread;  // that made the steps; empty: the same in all parts
  long long window = -1, part = -1;
  bool asked = false;             // by a request, while the job ran
  std::vector<std::int64_t> cut;  // steps that did not end before the recording did; of the last part
  std::string steps;              // the numbers between the brackets
  std::size_t step_count = 0;
};

// "[3, 4]"
std::vector<std::int64_t> numbers_in(std::string_view list) {
  std::vector<std::int64_t> out;
  for (std::size_t at = 0; at < list.size();) {
    std::int64_t number = 0;
    const auto read = std::from_chars(list.data() + at, list.data() + list.size(), number);
    if (read.ec == std::errc()) out.push_back(number);
    at = read.ec == std::errc() ? static_cast<std::size_t>(read.ptr - list.data()) : at + 1;
  }
  return out;
}

std::optional<Note> note_of(const Trace& trace) {
  const auto found = std::find_if(trace.metadata.begin(), trace.metadata.end(),
                                  [](const Metadata& entry) { return entry.key == kMember; });
  if (found == trace.metadata.end() || !found->json.starts_with('{')) return std::nullopt;
  Note note;
  for (const auto& [key, raw_key, value] : formats::members(found->json)) {
    if (key == "process") note.process = formats::value_text(value);
    if (key == "kind") note.kind = formats::value_text(value);
    if (key == "thread") note.thread = std::to_string(formats::value_int(value, 0));
    if (key == "partial_steps") note.cut = numbers_in(value);
    if (key == "asked") note.asked = value == "true";
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
  long long window() const { return parts.front().note.window; }
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

// A service may have a thread for each request, which is a step: one lane for all of these.
void name_thread(Part& part, const std::string& thread) {
  if (part.note.thread.empty() || thread.empty()) return;
  const StringId is = part.trace.strings.intern(part.note.thread), shall_be = part.trace.strings.intern(thread);
  for (Track& track : part.trace.tracks) {
    if (track.thread == is) track.thread = shall_be;
  }
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
  for (std::size_t i = 1; i < recording.parts.size(); i++) {
    name_thread(recording.parts[i], recording.parts.front().note.thread);
    const Trace& part = recording.parts[i].trace;
    append_trace(trace, part);
    std::copy_if(part.metadata.begin(), part.metadata.end(), std::back_inserter(trace.metadata),
                 [](const Metadata& entry) {
                   return entry.key == kCoreWaits || entry.key == kThreadsBeside || entry.key == kPageFaults;
                 });
  }
  if (recording.parts.size() > 1) {  // the last part knows which step was cut
    std::erase_if(trace.metadata, [](const Metadata& entry) { return entry.key == kMember; });
    const auto& said = recording.parts.back().trace.metadata;
    std::copy_if(said.begin(), said.end(), std::back_inserter(trace.metadata),
                 [](const Metadata& entry) { return entry.key == kMember; });
  }
  return trace;
}

// The whole steps of a recording, first to last; none: it has no whole step.
std::optional<std::pair<long long, long long>> steps_of(const Recording& recording) {
  std::optional<std::pair<long long, long long>> out;
  for (const Part& part : recording.parts) {
    const std::string_view text = part.note.steps;
    if (text.empty()) continue;
    const long long first = formats::value_int(text.substr(0, text.find(',')), 0);
    const long long last = formats::value_int(text.substr(text.rfind(',') + 1), 0);
    out = out ? std::pair(std::min(out->first, first), std::max(out->second, last)) : std::pair(first, last);
  }
  return out;
}

// How many steps two recordings share; of those without steps, whether they are the same window.
long long shared(const Recording& a, const Recording& b) {
  const auto of_a = steps_of(a), of_b = steps_of(b);
  if (!of_a || !of_b) return !of_a && !of_b && a.window() == b.window() ? 1 : 0;
  return std::max(0LL, std::min(of_a->second, of_b->second) - std::max(of_a->first, of_b->first) + 1);
}

using Processes = std::map<std::string, std::vector<Recording>>;

// Windows are minutes apart: shown together, the pause between them would count as idle. The one is taken that most
// processes recorded; of these the one that was asked for last, then the one with most steps, then the last.
const Recording& common_window(const Processes& processes) {
  const Recording* best = nullptr;
  std::tuple<long long, long long, std::size_t, long long> most{-1, -1, 0, 0};
  for (const auto& [process, windows] : processes) {
    for (const Recording& one : windows) {
      const auto has_it = [&](const auto& other) {
        return std::any_of(other.second.begin(), other.second.end(),
                           [&](const Recording& its) { return shared(one, its) > 0; });
      };
      const long long asked = one.parts.front().note.asked ? one.window() : -1;
      const std::tuple key{static_cast<long long>(std::count_if(processes.begin(), processes.end(), has_it)), asked,
                           one.steps(), one.window()};
      if (best == nullptr || key > most) best = &one, most = key;
    }
  }
  return *best;
}

// Of each process its recording of these steps; the traces, and what was left out.
std::vector<Trace> of_window(Processes processes, Run& run) {
  const Recording& common = common_window(processes);
  const auto span = steps_of(common);
  const std::string path = common.parts.front().trace.source.path;
  const std::string steps = !span ? "without whole steps"
                            : span->first == span->second
                                ? "of step " + std::to_string(span->first)
                                : "of steps " + std::to_string(span->first) + "-" + std::to_string(span->second);
  std::map<std::string, std::size_t> chosen;
  std::string others, without;
  std::size_t left_out = 0;
  for (const auto& [process, windows] : processes) {
    const auto closest = std::max_element(windows.begin(), windows.end(), [&](const Recording& a, const Recording& b) {
      return shared(a, common) < shared(b, common);
    });
    if (shared(*closest, common) > 0 || &*closest == &common) {
      chosen[process] = static_cast<std::size_t>(closest - windows.begin());
    } else {
      without += (without.empty() ? "" : ", ") + process;
    }
    for (const Recording& window : windows) {
      if (&window == &*closest && chosen.contains(process)) continue;
      left_out++;
      if (left_out <= kShownOthers) others += (others.empty() ? "" : ", ") + window.parts.front().trace.source.path;
    }
  }
  if (left_out > 0) {
    if (left_out > kShownOthers) others += ", …";
    run.issues.push_back({"other_windows", Severity::info,
                          "several windows were recorded; the one " + steps + " was opened" +
                              (without.empty() ? "" : ", which these processes have not: " + without),
                          "Give the file of another window to open that one: " + others, left_out, path, std::nullopt,
                          std::nullopt});
  }
  std::vector<Trace> traces;
  for (const auto& [process, window] : chosen) traces.push_back(joined(std::move(processes[process][window]), run));
  return traces;
}

}  // namespace

bool is_part(const Trace& trace) { return note_of(trace).has_value(); }

std::vector<std::int64_t> cut_steps(const Trace& trace) {
  const auto note = note_of(trace);
  return note ? note->cut : std::vector<std::int64_t>();
}

void join_parts(std::vector<Trace>& traces, Run& run) {
  std::vector<Trace> others;
  std::map<std::string, std::map<long long, Recording>> by_window;
  for (Trace& trace : traces) {
    std::optional<Note> note = note_of(trace);
    if (!note) {
      others.push_back(std::move(trace));
    } else if (note->kind == "stacks") {
      run.stack_steps.push_back(std::move(trace));
    } else {
      Recording& window = by_window[note->process][note->window];
      window.parts.push_back({*std::move(note), std::move(trace)});
    }
  }
  Processes processes;
  for (auto& [process, windows] : by_window) {
    for (auto& [number, window] : windows) processes[process].push_back(std::move(window));
  }
  if (!processes.empty()) {
    for (Trace& trace : of_window(std::move(processes), run)) others.push_back(std::move(trace));
  }
  if (others.empty()) others.swap(run.stack_steps);  // asked for by name: then its times are what there is
  traces = std::move(others);
}

}  // namespace stepscope::session
