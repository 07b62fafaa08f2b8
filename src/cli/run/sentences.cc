// The lines before and after a job.
#include "cli/run/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/run/memory_pages.h"
#include "collect/requests.h"
#include "report/format.h"
#include "run/progress.h"
#include "run/ring.h"
#include "run/run_folder.h"

namespace stepscope::cli {
namespace fs = std::filesystem;
namespace {

std::string window_text(const collect::Window& w) {
  return w.first + 1 == w.end ? fmt::format("{}", w.first) : fmt::format("{}-{}", w.first, w.end - 1);
}

std::string steps_text(const std::vector<collect::Window>& windows) {
  constexpr std::size_t kMost = 3;
  if (windows.size() == 1) {
    const bool one = windows.front().first + 1 == windows.front().end;
    return (one ? "step " : "steps ") + window_text(windows.front());
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(windows.size(), kMost); ++i) {
    out += (i == 0 ? "steps " : ", ") + window_text(windows[i]);
  }
  return windows.size() > kMost ? out + fmt::format(" and {} more windows", windows.size() - kMost) : out;
}

std::string cycle_text(const collect::Cycle& c) {
  std::string first = steps_text({{c.first, c.first + c.active}});
  if (c.repeat == 1) return first;
  const std::string often = c.repeat == 0 ? "to the end" : fmt::format("{} times in all", c.repeat);
  return fmt::format("{}, then again every {} steps, {}", first, c.period, often);
}

std::string when_text(const collect::Settings& settings, int pid) {
  const collect::Capture& capture = settings.capture;
  if (!settings.trace) return "steps and phases, no timeline,";
  if (settings.trigger == collect::Trigger::signal) {
    return fmt::format("nothing until asked (kill -USR2 {} records {} steps)", pid, collect::kRequestedSteps);
  }
  if (capture.on_request) return "nothing until asked (by a file in its requests folder)";
  if (capture.cycle) return cycle_text(*capture.cycle);
  if (const auto& s = capture.seconds) {
    return fmt::format("seconds {:.6g}:{:.6g} after the import of torch", s->start, s->end);
  }
  return capture.steps.empty() ? "steps 10-14 (of a job without an optimizer seconds 3-5)" : steps_text(capture.steps);
}

std::string size_text(std::uintmax_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  return bytes < 1'000'000 ? fmt::format("{} kB", bytes / 1000)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

bool names_rank(std::string_view ranks, std::int64_t rank, std::int64_t last) {
  for (std::size_t at = 0; at <= ranks.size();) {
    const std::size_t end = std::min(ranks.find(',', at), ranks.size());
    const std::string_view one = ranks.substr(at, end - at);
    if (one == "all" || (one == "last" && rank == last) || one == std::to_string(rank)) return true;
    at = end + 1;
  }
  return false;
}

// The job came to no recording; it could import torch, did not fail and had no profiler of its own.
std::string too_early(const Outcome& out, const std::string& folder, const collect::Capture& capture,
                      const std::string& how) {
  if (capture.on_request) {
    std::error_code code;
    const bool asked = fs::exists(fs::path(folder) / "requests", code);
    if (asked) return "the job " + how + " before a request could be recorded";
    const std::string kept = out.steps_seen > 0 ? fmt::format("; the marks of {} steps are kept", out.steps_seen) : "";
    return "no timeline was asked for until the job " + how + kept;
  }
  const auto wanted = [&](std::int64_t rank) { return names_rank(capture.ranks, rank, out.ranks.back()); };
  if (!out.ranks.empty() && std::none_of(out.ranks.begin(), out.ranks.end(), wanted)) {
    return fmt::format("--ranks {} names none of the job's ranks (0 to {})", collect::shown(capture.ranks),
                       out.ranks.back());
  }
  if (capture.seconds) return "the job " + how + " before its window began; try an earlier one, such as --seconds 0:2";
  if (out.steps_seen == 0) {
    return "no optimizer step was seen before the job " + how +
           "; a job without an optimizer is recorded with --seconds 0:2";
  }
  constexpr std::int64_t kAFew = 6;  // a long window could be lost again
  return fmt::format("the job {} after {} optimizer steps; try --steps {}:{}", how, out.steps_seen,
                     out.steps_seen > 2 ? 1 : 0, std::clamp<std::int64_t>(out.steps_seen, 1, kAFew));
}

std::string why_nothing(const Outcome& out, const std::string& folder, const collect::Capture& capture,
                        const collect::Ending& ending) {
  if (out.own_profiler)
    return "the job uses torch.profiler itself, of which torch has room for one, and exported nothing";
  if (!out.problem.empty()) return out.problem;
  if (!ending.signal && ending.code != 0) {
    return fmt::format("the job ended with exit code {}{}", ending.code,
                       out.torch_seen ? fmt::format(" after {} optimizer steps", out.steps_seen) : " before torch");
  }
  if (!out.torch_seen) {
    return "no Python process of the job imported torch under the hooks (python -E, -I and -S switch them off)";
  }
  return too_early(out, folder, capture,
                   ending.signal ? fmt::format("was ended by signal {}", *ending.signal) : "ended");
}

// "steps 10-14", and with gaps between several windows "10 steps between 10 and 44".
std::string recorded_steps(const Outcome& out) {
  if (!out.first_step) return "a stretch of time without whole steps";
  const std::int64_t spanned = *out.last_step - *out.first_step + 1;
  if (spanned == 1) return fmt::format("step {}", *out.first_step);
  if (out.whole_steps > 0 && out.whole_steps < spanned)
    return fmt::format("{} steps between {} and {}", out.whole_steps, *out.first_step, *out.last_step);
  return fmt::format("steps {}-{}", *out.first_step, *out.last_step);
}

std::string memory_text(const Outcome& out, const std::string& folder) {
  if (out.memory_traces == 0) return "";
  return fmt::format("; memory of {} in {}", report::format_plural(out.memory_traces, "rank"),
                     shown_path(folder + "/memory_trace"));
}

// How the job ended, where that says why less was recorded.
std::string ending_text(const Outcome& out, const collect::Ending& ending) {
  std::string text = ending.signal ? fmt::format("; the job was ended by signal {}", *ending.signal) : "";
  if (out.lost == 0) return text;
  const std::string who = out.ranks.size() > 1 ? report::format_plural(out.lost, "rank") : "it";
  text += ending.signal ? ", and" : "; a process was killed, or left by os._exit, and";
  return text + fmt::format(" what {} recorded just then is lost", who);
}

// What of a process's recordings is there; nsys writes a report of its own.
void take_steps(const run::ProcessNote& note, const std::set<std::string>& files, Outcome& out) {
  std::int64_t whole = 0;
  for (const run::ProcessNote::Part& part : note.parts) {
    if (!part.trace.empty() && !files.contains(part.trace)) continue;
    whole += static_cast<std::int64_t>(part.steps.size());
    for (const std::int64_t step : part.steps) {
      out.first_step = std::min(out.first_step.value_or(step), step);
      out.last_step = std::max(out.last_step.value_or(step), step);
    }
  }
  out.whole_steps = std::max(out.whole_steps, whole);
}

}  // namespace

std::string shown_path(const std::string& path) {
  std::error_code code;
  const fs::path relative = fs::path(path).lexically_relative(fs::current_path(code));
  return code || relative.empty() || *relative.begin() == ".." ? path : relative.string();
}

std::string plan_text(const collect::Settings& settings, int pid) {
  const std::string& ranks = settings.capture.ranks;
  std::string out = when_text(settings, pid);
  if (ranks != "all")
    out += (ranks.find(',') == std::string::npos ? " of rank " : " of ranks ") + collect::shown(ranks);
  if (settings.capture.nsys) out += " with nsys";
  if (const std::int64_t steps = settings.capture.memory_steps; steps > 0) {
    out += fmt::format("{} memory by module of the first {}", out.ends_with(',') ? "" : ",",
                       steps == 1 ? "step" : fmt::format("{} steps", steps));
  }
  if (!settings.left_out.empty()) out += ", which records no " + settings.left_out;
  return out;
}

Outcome outcome_of(const std::string& folder, const run::Manifest& manifest) {
  Outcome out;
  std::set<std::string> files;
  for (const std::string& trace : run::trace_files(folder)) {
    files.insert(trace);
    std::error_code code;
    const std::uintmax_t size = fs::file_size(fs::path(folder) / trace, code);
    ++out.traces;
    out.bytes += code ? 0 : size;
  }
  for (const run::ProcessNote& note : manifest.processes) {
    out.torch_seen = true;
    out.cost_s = std::max(out.cost_s, note.cost_s);
    if (note.is_rank && note.rank) out.ranks.push_back(*note.rank);
    out.processes += note.traces.empty() && note.whole_steps == 0 ? 0 : 1;  // nsys's report is of all of them
    out.on_gpu |= note.device != "cpu" && !note.device.empty();
    out.own_profiler |= note.own_profiler;
    out.steps_seen = std::max(out.steps_seen, note.steps_seen);
    take_steps(note, files, out);
    if (out.problem.empty()) out.problem = note.first_problem;
  }
  for (const std::string& path : run::ring_files(folder)) {  // a killed process could not write its note again
    const auto ring = run::read_ring(path);
    if (!ring) continue;
    const run::RankProgress progress = run::progress_of(*ring, 1);
    out.steps_seen = std::max(out.steps_seen, progress.steps);
    out.lost += !progress.running && progress.recording_since ? 1 : 0;
  }
  if (out.problem.empty() && !manifest.problems.empty()) out.problem = manifest.problems.front();
  out.memory_traces = memory_traces(folder).size();
  std::sort(out.ranks.begin(), out.ranks.end());
  out.ranks.erase(std::unique(out.ranks.begin(), out.ranks.end()), out.ranks.end());
  return out;
}

std::string end_text(const Outcome& out, const std::string& folder, const collect::Settings& settings,
                     const collect::Ending& ending) {
  const collect::Capture& capture = settings.capture;
  if (out.traces == 0 && !settings.trace && out.steps_seen > 0) {
    const std::string problem = out.problem.empty() ? "" : "; a problem: " + out.problem;
    return fmt::format(
        "kept the steps and phases of {} steps; no timeline was asked for{}{}{}. Next: stepscope report {}",
        out.steps_seen, memory_text(out, folder), ending_text(out, ending), problem, shown_path(folder));
  }
  if (out.traces == 0 && out.memory_traces > 0) {
    return fmt::format("recorded no timeline: {}{}. Next: stepscope report {} --only memory_state",
                       why_nothing(out, folder, capture, ending), memory_text(out, folder), shown_path(folder));
  }
  if (out.traces == 0) {
    const std::string next = run::ring_files(folder).empty() ? ". See " : ". Its steps: stepscope report ";
    return "nothing was recorded: " + why_nothing(out, folder, capture, ending) + next + shown_path(folder);
  }
  const std::string own = "the job's own torch.profiler";
  std::string text = out.traces == out.own_traces ? "recorded by " + own : "recorded " + recorded_steps(out);
  if (out.first_step && out.steps_seen > 0) text += fmt::format(" of {}", out.steps_seen);
  if (out.processes > 1) text += fmt::format(" in {} processes", out.processes);
  text += fmt::format(", {}, {}", out.on_gpu ? "CPU and GPU" : "CPU only (torch used no GPU)", size_text(out.bytes));
  if (out.own_traces > 0 && out.own_traces < out.traces) {
    text += fmt::format("; with {} of {}", report::format_plural(out.own_traces, "trace"), own);
  }
  text += memory_text(out, folder);
  text += run::cost_text(out.cost_s);
  text += ending_text(out, ending);
  if (!out.problem.empty()) text += fmt::format("; a problem: {}", out.problem);
  return text + ". Next: stepscope report " + shown_path(folder);
}

}  // namespace stepscope::cli
