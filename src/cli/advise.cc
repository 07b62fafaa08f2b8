// `stepscope advise`: what to change first, why, and what it would give.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/help.h"
#include "cli/open_paths.h"
#include "cli/report_output.h"
#include "cli/terminal.h"
#include "model/finding_order.h"
#include "report/advice.h"
#include "report/anonymous.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

struct AdviseOptions {
  OpenPaths open;
  bool json = false, anonymous = false;
  std::string output = "-", fail_on;
};

constexpr const char* kAdviseExamples = R"(Examples:
  stepscope advise run/                          what to change first, why, and what it would give
  stepscope advise trace.json.gz --json | jq '.findings[0]'
  stepscope advise run/ --fail-on 1.1            exit code 3 where a fix would make steps 1.1 times as fast
  stepscope advise run/ --fail-on high           exit code 3 where a sure finding has a gain

A gain is what the steps would take with the fix, played on the graph of the recorded ones; docs/what-if.md.)";

// A gate: findings that are sure ("high"), or whose middle gain is at least so much.
struct Gate {
  bool sure = false;
  double speedup = 0;
};

Result<std::optional<Gate>> gate_of(const std::string& text) {
  if (text.empty()) return std::optional<Gate>();
  if (text == "high") return std::optional(Gate{.sure = true});
  Gate gate;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), gate.speedup);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && gate.speedup > 1)
    return std::optional(gate);
  return fail({ErrorKind::usage, fmt::format("--fail-on takes high or a speedup above 1, not '{}'", text), "",
               std::nullopt, "Write --fail-on high or --fail-on 1.1"});
}

bool is_stopped(const Finding& finding, const Gate& gate) {
  if (!finding.gain) return false;
  const double speedup = worth(finding);
  return gate.sure ? speedup >= kWorthAdvice && finding.confidence == "high" : speedup >= gate.speedup;
}

Result<int> run_advise(const AdviseOptions& options) {
  const Result<std::optional<Gate>> gate = gate_of(options.fail_on);
  if (!gate) return fail(gate.error());
  ProgressLine progress;
  const Result<Run> run = options.open.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output); !kept) return fail(kept.error());
  int code = loss_outcome(*run);
  progress.show("looking for causes", -1);
  Result<Report> report = session::advise(*run);
  if (!report) return fail(report.error());
  if (options.anonymous) report::anonymize(*report);
  progress.erase();
  const std::string text =
      options.json ? report::to_advice_json(*report) : report::to_advice_text(*report, text_style(options.output));
  if (auto written = write_file(options.output, text); !written) return fail(written.error());
  if (!*gate) return code;
  for (const auto at : report->by_worth) {
    const Finding& finding = report->finding(at);
    if (!is_stopped(finding, **gate)) continue;
    print_notice(
        fmt::format("--fail-on {}: {} would make steps {:.2f}x as fast", options.fail_on, finding.id, worth(finding)));
    return kGateFailed;
  }
  return code;
}

void set_up_advise(CLI::App& app, int& code) {
  const auto options = std::make_shared<AdviseOptions>();
  app.add_option("PATH", options->open.paths, "Trace files, folders of ranks, or patterns")->required()->type_name("");
  app.add_flag("--json", options->json, "One JSON object: the findings, those worth most first");
  app.add_option("-o,--output", options->output, "Write to FILE; - is standard output")->type_name("FILE");
  app.add_option("--fail-on", options->fail_on, "Exit with 3 where a finding is sure, or worth so much")
      ->type_name("high|SPEEDUP");
  app.add_flag("--anonymous", options->anonymous, "Leave out hosts, users and the folders of absolute paths");
  options->open.add_options(app);
  app.footer(kAdviseExamples);
  app.callback([options, &code] {
    const Result<int> done = run_advise(*options);
    code = done ? *done : refused(done.error());
  });
}

}  // namespace

Command advise_command() { return {"advise", "Say what to change first, why, and what it would give", set_up_advise}; }

}  // namespace stepscope::cli
