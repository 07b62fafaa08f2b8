// Runs Python source inside a running CPython process that was started with nothing special.
//
// How: the main thread is stopped for about a millisecond (tracee.h), a piece of memory is mapped into the process, and
// Py_AddPendingCall is told to call the code in it. Python runs that code on its main thread between two bytecodes; it
// runs the source and frees the memory with everything in it, itself included. So nothing is left behind, nobody has to
// stop the process a second time, and the memory's disappearance is how we learn that the source has ended.
// While stopped, the thread takes no lock of the job's, allocates nothing and does not need the GIL (Py_AddPendingCall
// takes one small lock of its own; tracee.cc says what happens when the thread holds just that).
// Python 3.14 and newer: sys.remote_exec of the job's own interpreter first (remote_exec.h), which stops nothing.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "collect/inject/python_symbols.h"

namespace stepscope::collect {

struct Injection {
  PythonVersion python;
  bool by_remote_exec = false;   // Python's own way; nothing was stopped
  std::int64_t stopped_ns = 0;   // how long the main thread stood still
  std::int64_t finished_ns = 0;  // from the call to the end of the source
};

// Runs `source` (UTF-8, no NUL) on the main thread of process `pid`, wrapped as payload.h says, and returns when it has
// ended. Where the main thread does not come back to Python within `patience`, the call is taken back: the error says
// where the thread is, and the source will not run later. A source that has begun is waited for once more as long.
// Errors: usage (not a process to attach to), not_found (it ended, or runs no Python), unreadable (not allowed; the
// hint has the fix), unsupported (busy in native code, or a Python or machine that cannot be helped). Blocks signals of
// the calling thread for the moment of the stop. Not to be called for a process that this thread traces.
Result<Injection> inject_python(pid_t pid, std::string_view source, std::chrono::milliseconds patience);

// The same without sys.remote_exec, and with the functions to use: what inject_python does in the end.
Result<Injection> inject_by_ptrace(const std::string& proc_root, pid_t pid, const PythonSymbols& symbols,
                                   std::string_view wrapped_source, std::chrono::milliseconds patience);

}  // namespace stepscope::collect
