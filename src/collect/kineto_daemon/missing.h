// Why a process has no trace, in words.
#pragma once

#include <string>
#include <vector>

#include "collect/kineto_daemon/collect_traces.h"

namespace stepscope::collect::kineto {

// Of a process that asked.
Missing missing_trace(const Client& client, Reason reason);

// Of a process that never asked, judged by its environment. `folders`: those served besides the abstract name.
Missing missing_question(int pid, const std::vector<std::string>& folders);

}  // namespace stepscope::collect::kineto
