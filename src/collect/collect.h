// Collect: starts a job with the hooks in its environment, and looks at what this machine allows.
//
// Nothing in here may change a job's results, output or exit code: when a part fails, the job runs without it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::collect {

using Arguments = std::vector<std::string>;

// What the hooks are to record. Neither span: automatic (an early window that is kept only in jobs of a few steps, then
// steps 10-14; a job without an optimizer: seconds 3 to 5 after the import of torch).
struct Capture {
  std::string steps;    // "START:END", END is the first step that is not recorded
  std::string seconds;  // "START:END" since the import of torch
  bool shapes = true;
  bool memory = true;
  bool stack = false;
};

// "10:15", or one number N as "N:N+1" for steps and "3:3+N" for seconds; a usage error with an example else.
Result<std::string> parse_steps(std::string_view text);
Result<std::string> parse_seconds(std::string_view text);

// The text that STEPSCOPE_CAPTURE carries to the hooks (python/stepscope/hooks/_stepscope_hooks/settings.py).
std::string to_text(const Capture& capture);

// The folder with sitecustomize.py: STEPSCOPE_HOOKS, else beside the program (../share/stepscope/hooks, or
// python/stepscope/hooks in a folder above: a build inside the source tree). The error lists where was looked.
Result<std::string> find_hooks();

// Variables to set for the job: PYTHONPATH with the hooks in front, STEPSCOPE_RUN, STEPSCOPE_CAPTURE.
std::map<std::string, std::string> job_environment(const std::string& hooks, const std::string& run_folder,
                                                   const Capture& capture);

// How a job ended. `code` is what a shell would report: 127 and 126 when it could not start, 128 + signal.
struct Ending {
  int code = 0;
  std::optional<int> signal;
  std::string failure;  // not empty: the job could not start, and why
};

// Runs `command` (first word searched in PATH) with this process's stdin, stdout and stderr and `extra` in its
// environment, forwards signals sent to this process, and waits for its end.
Ending run_job(const Arguments& command, const std::map<std::string, std::string>& extra);

enum class Status { ok, warning, failure };

// One line of the doctor: what was looked at, what was found, and what to do when that is not good.
struct Check {
  std::string name;
  Status status = Status::ok;
  std::string found;
  std::string fix;      // empty when ok
  bool needed = false;  // a failure here means that the main job cannot be done
};

// All checks that need no other room. `python`: the interpreter to look at; empty: $VIRTUAL_ENV, then PATH.
std::vector<Check> check_machine(const std::string& python, const std::string& out_folder);

}  // namespace stepscope::collect
