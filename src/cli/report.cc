#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace stepscope::cli {

Command report_command() {
  return {"report", "", [](CLI::App&, int&) {}};
}

}  // namespace stepscope::cli
