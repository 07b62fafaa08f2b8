// `stepscope report --tensorboard FOLDER`: the numbers of each step as event files.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::cli {

// Behind the other options of the report: those that say how it looks go with it no more than --html does.
void add_tensorboard_option(CLI::App& app, std::string& folder);

// Says on stderr what was written and what could not be. Fails where there is no curve at all, and before anything is
// written where a file of the run would be replaced.
Result<void> write_tensorboard(const Run& run, const Report& report, const std::string& folder);

}  // namespace stepscope::cli
