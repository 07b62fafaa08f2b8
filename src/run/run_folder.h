// The run folder's names: <out>/<job>/<start_time>/ (docs/run-folder.md). Collect makes it, read finds its way in it.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::run {

using Arguments = std::vector<std::string>;

inline constexpr const char* kNsysFolder = "nsys";  // in the run folder: the reports of `stepscope run --nsys`

// The job's name: the script or module that a Python command runs, through launchers (torchrun, accelerate …); else the
// program's own name. Only letters, digits, '.', '_' and '-'; never empty, never starting with a dot.
std::string job_name(const Arguments& command);

// Like Sep08_11-00-51, local time.
std::string start_stamp(std::time_t seconds);

// Makes <out>/<job>/<stamp>, with -2, -3 … behind the stamp when that exists; the absolute path. Fails with the
// system's reason (permission, no space, a file where a folder is meant).
Result<std::string> make_run_folder(std::string_view out, std::string_view job, std::string_view stamp);

// Paths of the trace files below <run folder>/traces and of nsys's reports, relative to the run folder, sorted.
std::vector<std::string> trace_files(const std::string& run_folder);

// Waits until the files that the processes announced (relative paths) are there: they are compressed by processes that
// outlive the job. Gives up when nothing grew for `patience_s`; the missing ones.
std::vector<std::string> wait_for_traces(const std::string& run_folder, const std::vector<std::string>& announced,
                                         double patience_s);

}  // namespace stepscope::run
