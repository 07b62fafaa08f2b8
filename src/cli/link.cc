// `stepscope link`: which operator of an execution trace took which time of its timeline.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/command.h"
#include "cli/link_files.h"

namespace stepscope::cli {
namespace {

constexpr const char* kLinkExamples = R"(Examples:
  stepscope link et.json trace.json.gz                  how much of the two belongs together, and by which evidence
  stepscope link et.json trace.json.gz --json | jq .operators.unmatched
  stepscope link et.json trace.json.gz -o linked.json   the execution trace with times, and its kernels as nodes

Record the two in the same steps: stepscope run --with execution-trace -- CMD. stepscope convert --to chakra links them
by itself. Below half of the operators nothing is written: the exit code is 1.)";

void set_up_link(CLI::App& app, int& code) {
  const auto options = std::make_shared<LinkFiles>();
  app.add_option("PATH", options->input.paths, "An execution trace and the timeline of the same rank, in any order")
      ->required()
      ->type_name("");
  app.add_option("-o,--output", options->output, "The execution trace with times; gzip where it ends in .gz")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "The counts as JSON, for scripts");
  options->input.add_options(app);
  app.footer(kLinkExamples);
  app.callback([options, &code] { code = outcome(link_files(*options)); });
}

}  // namespace

Command link_command() { return {"link", "Give an execution trace the times of its timeline", set_up_link}; }

}  // namespace stepscope::cli
