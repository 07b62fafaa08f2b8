// What moved through networks, links and memory while ranks communicated, and what moved otherwise.
#pragma once

#include <vector>

#include "analyze/system/ranks.h"
#include "model/answer.h"

namespace stepscope::analyze::telemetry {

// A row for each rank and each counter of bytes of its machine whose samples can tell the two apart; where there are
// collectives and samples but no row, a note of `answer` says why.
Table collectives_table(const Run& run, const std::vector<RankSystem>& ranks, Answer& answer);

}  // namespace stepscope::analyze::telemetry
