#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace stepscope::cli {

Command completion_command() {
  return {"completion", "", [](CLI::App&, int&) {}};
}

}  // namespace stepscope::cli
