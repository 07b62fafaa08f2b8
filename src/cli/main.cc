// The command line: builds --help from the registry of commands and hands over to one of them.
#include <CLI/CLI.hpp>

#include "cli/command.h"

int main(int argc, char** argv) {
  CLI::App app{"stepscope: where does the time of a training step go?", "stepscope"};
  app.require_subcommand(1);
  int code = stepscope::cli::kOk;
  for (const auto& command : stepscope::cli::commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    command.set_up(*sub, code);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? stepscope::cli::kOk : stepscope::cli::kUsage;
  }
  return code;
}
