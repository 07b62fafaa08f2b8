// A file that `stepscope merge` wrote holds several ranks: this gives them back as they were, one trace each.
#pragma once

#include <vector>

#include "model/trace.h"

namespace stepscope::read::chrome_trace {

// Does the trace say that it was merged from several?
bool is_merged(const Trace& trace);

// The ranks of a merged trace, with the processes, times and members of their own. What belongs to no rank is counted
// in an issue of the first. Damaged notes give back the one trace, with an issue that says so.
std::vector<Trace> split_ranks(Trace merged);

}  // namespace stepscope::read::chrome_trace
