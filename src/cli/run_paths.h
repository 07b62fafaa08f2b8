// Which run folder is meant. Shared by the commands that look at a running job.
#pragma once

#include <string>

#include "base/result.h"

namespace stepscope::cli {

// `given`: a run folder, or a folder of runs, of which the newest is taken; also the name of a job in `out`. Empty: the
// newest run in `out`.
Result<std::string> find_run(const std::string& given, const std::string& out);

}  // namespace stepscope::cli
