// Python source that runs inside a job without a way to disturb it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace stepscope::collect {

// `source` (UTF-8) as one line of Python 3.6 and newer, for PyRun_SimpleString and for a file.
// - It runs in a module of its own, named _stepscope_attach: nothing is left in the job's __main__.
// - Exceptions of the source are swallowed: it tells its own failures (a file). Where the job's signal handler raises
//   KeyboardInterrupt or SystemExit while the source runs, it is raised again in the job shortly after.
// - It runs in process `pid` only (the process's own number of itself; 0: anywhere): a job that forks with the call in
//   its queue would run it in the child too.
// - It may run in the middle of one of the job's own imports: a module that it finds may not be whole yet.
// - `remove`: a file that is removed when the source has ended ("": none).
std::string wrapped(std::string_view source, pid_t pid = 0, std::string_view remove = {});

}  // namespace stepscope::collect
