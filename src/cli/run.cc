#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace stepscope::cli {

Command run_command() {
  return {"run", "", [](CLI::App&, int&) {}};
}

}  // namespace stepscope::cli
