// Python 3.14 and newer run a file inside another process by themselves: sys.remote_exec(pid, path).
//
// The caller has to be a Python of the same minor version, so the job's own interpreter is asked, where this machine
// sees the same file and the same temporary folder as the job; elsewhere, and where it was switched off
// (PYTHON_DISABLE_REMOTE_DEBUG), the injector does the work.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "collect/inject/inject.h"

namespace stepscope::collect {

// The interpreter of the process, when running it here gives the same Python; empty otherwise.
std::string interpreter_of(const std::string& proc_root, pid_t pid);

// As inject_python. nullopt: not possible this way, and nothing has happened.
std::optional<Result<Injection>> inject_by_remote_exec(const std::string& proc_root, pid_t pid, std::string_view source,
                                                       std::chrono::milliseconds patience);

// The same with `python` as the interpreter to ask.
std::optional<Result<Injection>> inject_by_remote_exec_of(const std::string& python, const std::string& proc_root,
                                                          pid_t pid, std::string_view source,
                                                          std::chrono::milliseconds patience);

}  // namespace stepscope::collect
