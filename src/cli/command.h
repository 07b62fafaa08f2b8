// Contract of the subcommands: one file per command, one line in commands.list.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}

namespace stepscope::cli {

// Exit codes of every command but `run`, which passes the job's own code through.
enum ExitCode : int { kOk = 0, kRefused = 1, kUsage = 2, kGateFailed = 3, kPartial = 4 };

struct Command {
  std::string_view name;
  std::string_view summary;  // one line of --help
  // Adds options to `app` and arranges (app.callback) that running it stores the exit code in `code`.
  void (*set_up)(CLI::App& app, int& code);
  bool hidden = false;  // not in --help: another tool's command under its own name
};

// Says the error on stderr; gives the exit code that it means.
int refused(const Error& error);
int outcome(const Result<void>& done);  // kOk, or as refused

std::span<const Command> commands();  // from commands.list

// Takes the command behind `run` off the words that CLI11 gets to see: it would read brackets and options in them. The
// number of words that are left for it.
int take_job_arguments(int argc, char** argv);

}  // namespace stepscope::cli
