#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace stepscope::cli {

Command doctor_command() {
  return {"doctor", "", [](CLI::App&, int&) {}};
}

}  // namespace stepscope::cli
