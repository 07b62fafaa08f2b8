// Collect: starts a job with the hooks in its environment, and looks at what this machine allows.
//
// Nothing in here may change a job's results, output or exit code: when a part fails, the job runs without it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/capture.h"

namespace stepscope::collect {

using Arguments = std::vector<std::string>;

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

// What happens beside the job; every function may be empty.
struct Beside {
  int number = 0;                        // a signal that means something to us; 0: none
  std::function<void()> act;             // called (outside of signal context) instead of passing that signal on
  std::function<void()> ready;           // called once the signal is safe to send, before the job starts
  std::function<void(pid_t job)> began;  // called when its process is there
  std::function<void(pid_t job)> look;   // called about once a second while the job runs
};

// Runs `command` (first word searched in PATH) with this process's stdin, stdout and stderr and `extra` in its
// environment, forwards signals sent to this process but the one of `beside`, and waits for its end.
Ending run_job(const Arguments& command, const std::map<std::string, std::string>& extra, const Beside& beside = {});

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
