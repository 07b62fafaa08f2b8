// The part of a command line that opens traces: paths, cache, threads, rules. Shared by the commands that read them.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/terminal.h"
#include "model/trace.h"
#include "session/session.h"

namespace stepscope::cli {

struct OpenPaths {
  std::vector<std::string> paths;
  bool no_cache = false;
  std::string rules, peaks, flop_rules;
  unsigned threads = 0;

  // Options but PATH, which stands where the command wants it.
  void add_options(CLI::App& app);
  session::OpenOptions options() const;
  Result<Run> open(ProgressLine& progress) const;
};

// An error where `format` would show nothing: the run is of execution graphs alone, or of telemetry and the format has
// no counters.
Result<void> has_events(const Run& run, const std::string& format, bool has_counters);

// Leaves execution graphs out of a run that is to be written as something that shows when things ran.
void keep_timelines(Run& run);

// What the exit code says of a run that was read with losses, and was used all the same.
int loss_outcome(const Run& run);

// An error where `target` is a file that the run was read from: a slip such as -o trace.json must not cost a recording
// that took hours.
Result<void> keep_inputs(const Run& run, const std::string& target);

}  // namespace stepscope::cli
