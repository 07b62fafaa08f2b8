// Where the functions that an injection needs lie in a running Python process.
//
// Py_AddPendingCall and PyRun_SimpleString come from the mapped libpython3*.so, else from the executable (Debian and
// conda link python statically); munmap and __errno_location from its C library. The first bytes of each function are
// kept: whoever calls compares them with the process's memory first, so a file that was swapped under a running
// process, a breakpoint or a wrong load bias ends in an error and never in a call into the middle of something.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stepscope::collect {

struct RemoteFunction {
  std::uint64_t address = 0;  // in the process
  std::string first_bytes;    // as the file has them
};

struct PythonVersion {
  int major = 0;
  int minor = 0;  // 0.0: unknown
};

struct PythonSymbols {
  std::string file;  // libpython or the executable, as the process sees it
  PythonVersion version;
  RemoteFunction add_pending_call;
  RemoteFunction run_simple_string;
  RemoteFunction unmap;
  RemoteFunction errno_location;
};

// not_found: no Python in the process. unsupported: a Python whose functions cannot be found; the hint has the way out.
Result<PythonSymbols> find_python_symbols(const std::string& proc_root, pid_t pid);

}  // namespace stepscope::collect
