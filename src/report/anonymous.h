// A report that can be given to others: hosts, users and absolute paths taken out of every text in it.
#pragma once

#include "model/answer.h"

namespace stepscope::report {

// Of an absolute path the last part stays, a host becomes host-1, host-2 … and a user user-1 …, the same everywhere.
// Hosts are those that the report knows of (Report::hosts) and that file names hold (HOST_PID.TIME…), users those of
// home folders in its texts. Names of modules, ops and kernels stay.
void anonymize(Report& report);

}  // namespace stepscope::report
