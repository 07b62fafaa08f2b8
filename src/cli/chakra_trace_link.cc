// `stepscope chakra_trace_link`: the command of MLCommons' Chakra with its own options, for scripts that exist. It is
// not in --help; `stepscope install-aliases` installs it under its name.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/command.h"
#include "cli/link_files.h"

namespace stepscope::cli {
namespace {

struct TraceLinkOptions {
  LinkFiles files;
  std::string host, device, rank, log_level;
};

void set_up_trace_link(CLI::App& app, int& code) {
  const auto options = std::make_shared<TraceLinkOptions>();
  app.add_option("--chakra-host-trace,--pytorch-et-file", options->host, "The execution trace")
      ->required()
      ->type_name("FILE");
  app.add_option("--chakra-device-trace,--kineto-file", options->device, "The timeline")->required()->type_name("FILE");
  app.add_option("--output-file", options->files.output, "The execution trace with times")
      ->required()
      ->type_name("FILE");
  app.add_option("--rank", options->rank, "Taken and left out: the two files say it")->type_name("N");
  app.add_option("--log-level", options->log_level, "Taken and left out: there is no log")->type_name("LEVEL");
  app.footer(
      "Examples:\n  stepscope chakra_trace_link --chakra-host-trace et.json --chakra-device-trace trace.json.gz "
      "--output-file linked.json --rank 0");
  app.callback([options, &code] {
    options->files.input.paths = {options->host, options->device};
    code = outcome(link_files(options->files));
  });
}

}  // namespace

Command chakra_trace_link_command() {
  return {"chakra_trace_link", "As Chakra's command: an execution trace with times", set_up_trace_link, true};
}

}  // namespace stepscope::cli
