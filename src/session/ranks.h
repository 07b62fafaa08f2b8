// Which rank each trace is: from distributedInfo, then the file name, then the order given.
#pragma once

#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope::session {

// The rank that a path names ("rank-3.pt.trace.json", "traces/rank12_dp1_tp4_pp0/…"); the last such part counts.
std::optional<std::int64_t> rank_in_name(std::string_view path);

// Settles the rank of every trace, sorts the traces by it, and notes clashes and holes as issues of the run.
void settle_ranks(Run& run);

// Files of one folder need not be of one job: an issue where they show what no job does. Of a run whose clocks are
// settled.
void note_unrelated(Run& run);

}  // namespace stepscope::session
