#include "collect/nsys.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "run/nsys.h"
#include "run/run_folder.h"

namespace stepscope::collect {
namespace fs = std::filesystem;
namespace {

struct Option {
  std::string_view name, short_name, value;
};

// nsys ends the job with its first capture range unless told to stop or to repeat; with several processes it takes the
// first start and the first stop of any.
std::string range_end(const Capture& capture) {
  if (capture.on_request || (capture.cycle && capture.cycle->repeat == 0)) return "repeat";
  const auto windows = capture.cycle ? static_cast<std::size_t>(capture.cycle->repeat) : capture.steps.size();
  return windows > 1 ? "repeat:" + std::to_string(windows) : "stop";
}

// nsys reads %h, %p and %q{NAME} in the name of its report.
std::string report_name(const std::string& run_folder) {
  std::string out;
  for (const char c : (fs::path(run_folder) / run::kNsysFolder / "report").string())
    out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

bool is(std::string_view word, const Option& option) {
  return word == option.name || word.starts_with(std::string(option.name) + "=") ||
         (!option.short_name.empty() && word.starts_with(option.short_name) && !word.starts_with("--"));
}

Error wrong(std::string message, std::string hint) {
  return {ErrorKind::usage, std::move(message), {}, {}, std::move(hint)};
}

}  // namespace

Result<std::string> nsys_program() {
  if (auto found = run::find_nsys()) return *std::move(found);
  return fail({ErrorKind::usage,
               "--nsys needs NVIDIA Nsight Systems, and there is no nsys in PATH or /opt/nvidia",
               {},
               {},
               "Leave out --nsys: torch.profiler, which then records, sees the kernels too"});
}

Result<Arguments> parse_nsys_options(std::string_view text) {
  Arguments words;
  bool open = false;  // within a word
  char quote = 0;
  for (const char c : text) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote == 0 ? c : '\0';
      if (!open) words.emplace_back();
      open = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  if (quote != 0) return fail(wrong("a quote is not closed in " + quoted(text), "Close it"));
  if (words.empty())
    return fail(wrong("there is no option in it", "Write nsys's own, such as \"--sample=process-tree\""));
  static constexpr Option kOutput{"--output", "-o", ""};
  for (const std::string& word : words) {
    if (is(word, kOutput)) return fail(wrong("the report's place is in the run folder", "Leave out " + word));
  }
  return words;
}

Arguments nsys_command(const std::string& nsys, const Settings& settings, const std::string& run_folder,
                       const Arguments& job) {
  const std::string end = range_end(settings.capture), report = report_name(run_folder);
  const std::array own{Option{"--trace", "-t", "nvtx,cuda"},
                       Option{"--sample", "-s", "none"},
                       Option{"--cpuctxsw", "", "none"},
                       Option{"--capture-range", "-c", "cudaProfilerApi"},
                       Option{"--capture-range-end", "", end},
                       Option{"--wait", "", "primary"},        // a daemon that the job leaves is not waited for
                       Option{"--show-output", "-w", "true"},  // of the job; false in older ones
                       Option{"--output", "-o", report}};
  const Arguments& given = settings.nsys_options;
  Arguments out{nsys, "profile"};
  for (const Option& option : own) {
    if (std::none_of(given.begin(), given.end(), [&](const std::string& word) { return is(word, option); })) {
      out.push_back(std::string(option.name) + "=" + std::string(option.value));
    }
  }
  out.insert(out.end(), given.begin(), given.end());
  out.insert(out.end(), job.begin(), job.end());
  return out;
}

std::vector<std::string> export_reports(const std::string& nsys, const std::string& run_folder) {
  std::vector<std::string> problems;
  bool any = false;
  for (const std::string& name : run::trace_files(run_folder)) {
    if (!name.ends_with(".nsys-rep")) continue;
    any = true;
    const fs::path report = fs::path(run_folder) / name;
    fs::path database = report;
    database.replace_extension(".sqlite");
    if (!run::export_report(nsys, report.string(), database.string())) {
      problems.push_back(name + " could not be exported to SQLite; stepscope report tries it again");
    }
  }
  if (!any) problems.emplace_back("nsys left no report");
  return problems;
}

}  // namespace stepscope::collect
