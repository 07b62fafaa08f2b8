// `stepscope diff`: what changed between two runs, with a gate for CI.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/open_paths.h"
#include "cli/report_output.h"
#include "cli/terminal.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

constexpr std::size_t kDiffRows = 10;  // of the longest table

struct DiffOptions {
  std::string a, b;
  OpenPaths open;
  std::vector<std::string> by, fail_on, again;
  ReportOutput output;
};

constexpr const char* kDiffExamples =
    R"(Examples:
  stepscope diff before.json.gz after.json.gz    is it slower, and what is the change made of
  stepscope diff runs/old runs/new --by kernel   folders of ranks; the table of kernels only
  stepscope diff runs/new@0 runs/new@7           two ranks of one run
  stepscope diff old new --fail-on 'step>3%'     exit code 3 when the step grew by more than 3 % and than its noise
  stepscope diff old new --fail-on 'phase:optimizer>10%' --fail-on 'kernel:gemm>0.5ms'

Exit codes: 0 fine, 1 refused, or a gate could not be judged, 2 wrong usage, 3 a gate failed.)";

// "runs@3": rank 3 of runs/, unless there is a file of that very name.
Result<Run> open_side(OpenPaths from, const std::string& path, ProgressLine& progress) {
  const std::size_t at = path.rfind('@');
  const std::string number = at == std::string::npos ? "" : path.substr(at + 1);
  const bool names_rank = !number.empty() && number.size() < 9 && !std::filesystem::exists(path) &&
                          std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  from.paths = {names_rank ? path.substr(0, at) : path};
  Result<Run> run = from.open(progress);
  if (!run || !names_rank) return run;
  const std::int64_t rank = std::stoll(number);
  std::erase_if(run->traces, [&](const Trace& trace) { return trace.rank.rank != rank; });
  run->path = path;
  if (!run->traces.empty()) return run;
  return fail({.kind = ErrorKind::not_found,
               .message = "no rank " + number + " among the traces",
               .file = path.substr(0, at),
               .offset = std::nullopt,
               .hint = "Run stepscope report on it to see its ranks"});
}

Result<session::Comparison> make_difference(const DiffOptions& options, diff::Options wanted) {
  ProgressLine progress;
  const Result<Run> a = open_side(options.open, options.a, progress);
  if (!a) return fail(a.error());
  const Result<Run> b = open_side(options.open, options.b, progress);
  if (!b) return fail(b.error());
  for (const Run* run : {&*a, &*b}) {
    if (auto kept = keep_inputs(*run, options.output.target()); !kept) return fail(kept.error());
  }
  std::vector<Run> again;
  for (const std::string& path : options.again) {
    Result<Run> run = open_side(options.open, path, progress);
    if (!run) return fail(run.error());
    again.push_back(*std::move(run));
  }
  for (const Run& run : again) wanted.again.push_back(&run);
  progress.show("comparing", -1);
  return session::compare(*a, *b, wanted);
}

int gates_outcome(const std::vector<diff::GateResult>& gates) {
  int code = kOk;
  for (const diff::GateResult& result : gates) {
    if (result.failed && !*result.failed) continue;
    print_notice(fmt::format("gate '{}' {}: {}", result.gate.text, result.failed ? "failed" : "cannot be judged",
                             result.sentence));
    if (code != kGateFailed) code = result.failed ? kGateFailed : kRefused;
  }
  return code;
}

int run_diff(const DiffOptions& options) {
  diff::Options wanted{.levels = options.by, .gates = {}};
  for (const std::string& text : options.fail_on) {
    Result<diff::Gate> gate = diff::parse_gate(text);
    if (!gate) return refused(gate.error());
    wanted.gates.push_back(*std::move(gate));
  }
  const Result<session::Comparison> found = make_difference(options, wanted);
  if (!found) return refused(found.error());
  if (const auto written = options.output.write(found->report, true, kDiffRows); !written)
    return refused(written.error());
  return gates_outcome(found->gates);
}

void set_up_diff(CLI::App& app, int& code) {
  const auto options = std::make_shared<DiffOptions>();
  app.add_option("A", options->a, "The run before: a trace, a folder of ranks, or FOLDER@RANK")
      ->required()
      ->type_name("");
  app.add_option("B", options->b, "The run after")->required()->type_name("");
  const auto levels = diff::level_names();
  app.add_option("--by", options->by, "Only the table of: phase, module, operator, kernel, collective; may be repeated")
      ->type_name("WHAT")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->check(CLI::IsMember(std::vector<std::string>(levels.begin(), levels.end())));
  app.add_option("--fail-on", options->fail_on,
                 "A gate such as 'step>3%' or 'kernel:gemm>0.5ms': exit code 3 when that grew by more; may be repeated")
      ->type_name("GATE")
      ->expected(1)
      ->take_all();
  app.add_option(
         "--again", options->again,
         "A repeat of A: what it differs by from A is the noise (default: quarters of each run); may be repeated")
      ->type_name("PATH")
      ->expected(1)
      ->take_all();
  options->output.add_options(app, std::to_string(kDiffRows));
  options->open.add_options(app);
  app.footer(kDiffExamples);
  app.callback([options, &code] { code = run_diff(*options); });
}

}  // namespace

Command diff_command() {
  return {"diff", "Say what changed between two runs, and whether it is more than noise", set_up_diff};
}

}  // namespace stepscope::cli
