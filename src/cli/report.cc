// `stepscope report`: opens traces, runs the answers, writes them as text, JSON, CSV or one HTML file.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/did_you_mean.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/open_paths.h"
#include "cli/report/tensorboard.h"
#include "cli/report_output.h"
#include "cli/terminal.h"
#include "report/anonymous.h"
#include "report/arrange.h"
#include "report/memory_pages.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

constexpr std::size_t kReportRows = 5;  // of the longest table on one screen

struct ReportOptions {
  OpenPaths input;
  std::vector<std::string> only;
  ReportOutput output;
  std::string tensorboard;  // a folder
  bool strict = false;
  report::Arrangement tables;
  compat::Options compat;
  std::vector<std::string> arguments;  // NAME=VALUE of the compatible mode
};

constexpr const char* kReportExamples =
    R"(Examples:
  stepscope report trace.json.gz                 where the time of a step goes, on one screen
  stepscope report traces/                       a folder of ranks as one run
  stepscope report 'rank*.json.gz'               a pattern, in quotes or not
  stepscope report trace.json --only kernels     one answer in full
  stepscope report trace.json --html report.html a page with pictures, in one file
  stepscope report traces/ --tensorboard tb      curves over steps; then tensorboard --logdir tb
  stepscope report trace.json --json | jq .answers.overview.scalars
  stepscope report trace.json --only operators --csv -o operators.csv
  stepscope report trace.json --only operators --sort self_cuda_time_total --limit 10 --group-by shape

Exit codes: 0 fine, 1 refused, 2 wrong usage, 4 a report was made but data was lost (with --strict: 1).)";

Result<Report> make_report(const ReportOptions& options) {
  ProgressLine progress;
  const auto run = options.input.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output.target()); !kept) return fail(kept.error());
  progress.show("working out the answers", -1);
  auto report = session::answer(*run, options.only, options.compat);
  if (!report) return report;
  if (!options.tensorboard.empty()) {
    progress.erase();
    if (options.output.anonymous) report::anonymize(*report);
    if (auto written = write_tensorboard(*run, *report, options.tensorboard); !written) return fail(written.error());
  }
  if (const auto arranged = report::arrange(*report, options.tables); !arranged) return fail(arranged.error());
  return report;
}

// What the exit code says about a report that was written.
int report_outcome(const Report& report, const ReportOptions& options) {
  if (report.answers.empty() && !report.failed.empty()) {
    const auto& [name, reason] = report.failed.front();
    print_notice(fmt::format("no answer could be made; {}: {}", name, reason));
    return kRefused;
  }
  const auto lost = std::count_if(report.issues.begin(), report.issues.end(),
                                  [](const Issue& issue) { return issue.severity == Severity::lost; });
  if (lost == 0) return kOk;
  const int code = options.strict ? kRefused : kPartial;
  print_notice(fmt::format("data was lost in the input ({} {}), so the report is partial{}", lost,
                           lost == 1 ? "issue" : "issues", options.strict ? "; --strict makes this an error" : ""));
  return code;
}

// `--html FOLDER`: the pages of the state of memory, which are five.
Result<void> write_pages(Report report, const ReportOptions& options) {
  if (options.only != std::vector<std::string>{"memory_state"}) {
    return fail({ErrorKind::usage, "it is a folder", options.output.html, std::nullopt,
                 "Name a file in it; only the pages of memory are several: --only memory_state"});
  }
  if (report.inputs.size() > 1) {
    return fail({ErrorKind::usage, "the pages are of one rank, and there are several", options.output.html,
                 std::nullopt, "Give the folder of one, such as RUN/memory_trace/rank0_dp0_tp0"});
  }
  if (options.output.anonymous) report::anonymize(report);
  if (auto written = report::write_memory_pages(report, options.output.html); !written) return written;
  print_notice(fmt::format("wrote {} pages into {}; they need no network", report::memory_page_names().size(),
                           options.output.html));
  return {};
}

// Before anything is read: a slip in a name should not cost the minutes of opening a big trace.
std::optional<Error> unknown_answer(const ReportOptions& options) {
  const std::string& mode = options.compat.mode;
  const auto names = session::answer_names(mode);
  if (names.empty()) return unknown_name("compatible mode", mode, session::compat_modes());
  for (const auto& wanted : options.only) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) return unknown_name("answer", wanted, names);
  }
  return std::nullopt;
}

std::optional<Error> take_arguments(ReportOptions& options) {
  for (const std::string& argument : options.arguments) {
    const std::size_t sign = argument.find('=');
    if (sign == std::string::npos) {
      return Error{ErrorKind::usage, fmt::format("'{}' is not NAME=VALUE", argument), "", std::nullopt, ""};
    }
    options.compat.arguments[argument.substr(0, sign)] = argument.substr(sign + 1);
  }
  if (options.arguments.empty() && !options.compat.include_last_step) return std::nullopt;
  if (!options.compat.mode.empty()) return std::nullopt;
  return Error{ErrorKind::usage, "--arg and --include-last-profiler-step belong to a compatible mode", "", std::nullopt,
               "Add --compat hta"};
}

int run_report(ReportOptions& options) {
  if (const auto error = take_arguments(options)) return refused(*error);
  if (const auto error = unknown_answer(options)) return refused(*error);
  const auto report = make_report(options);
  if (!report) return refused(report.error());
  if (!options.tensorboard.empty()) return report_outcome(*report, options);
  const bool whole = !options.only.empty() || !options.compat.mode.empty();
  if (options.output.to_folder()) {
    if (const auto written = write_pages(*report, options); !written) return refused(written.error());
    return report_outcome(*report, options);
  }
  if (const auto written = options.output.write(*report, whole, whole ? options.tables.limit : kReportRows); !written) {
    return refused(written.error());
  }
  return report_outcome(*report, options);
}

std::string name_list() {
  std::string names;
  for (const auto name : session::answer_names()) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

void set_up_compat(CLI::App& app, ReportOptions& options) {
  app.add_option("--compat", options.compat.mode,
                 "The answers of another tool, literally, instead of ours: hta, tensorboard (docs/hta.md)")
      ->type_name("TOOL");
  auto* include = app.add_flag("--include-last-profiler-step", options.compat.include_last_step,
                               "With --compat hta: keep the last step");
  app.add_flag_function(
         "--drop-last-step", [&](std::int64_t) { options.compat.include_last_step = false; },
         "With --compat hta: leave the last step out, as HTA does by default")
      ->excludes(include);
  app.add_option("--arg", options.arguments, "With --compat: an argument of the other tool's function, see docs/hta.md")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
}

void set_up_report(CLI::App& app, int& code) {
  const auto options = std::make_shared<ReportOptions>();
  app.add_option("PATH", options->input.paths, "Trace files, folders of ranks, or patterns such as 'rank*.json.gz'")
      ->required()
      ->type_name("");
  // Repeated options take one word each: a list would eat the PATH behind it.
  app.add_option("--only", options->only, "Show this answer in full; may be repeated. Names: " + name_list())
      ->type_name("NAME")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->take_all();
  options->output.add_options(app, fmt::format("{}, all with --only, of trees of memory 20", kReportRows));
  app.add_flag("--strict", options->strict, "Exit with 1 when any data was lost");
  app.add_option("--sort", options->tables.sort,
                 "Sort tables by this column; for operators also torch's names, such as self_cuda_time_total")
      ->type_name("COLUMN");
  app.add_option("--limit", options->tables.limit, "Keep the first N rows of each table")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  app.add_option("--group-by", options->tables.group, "Of tables by_name, by_shape and by_stack keep one")
      ->type_name("name|shape|stack");
  options->input.add_options(app);
  set_up_compat(app, *options);
  add_tensorboard_option(app, options->tensorboard);
  app.footer(kReportExamples);
  app.callback([options, &code] { code = run_report(*options); });
}

}  // namespace

Command report_command() { return {"report", "Say where the time goes in traces that were recorded", set_up_report}; }

}  // namespace stepscope::cli
