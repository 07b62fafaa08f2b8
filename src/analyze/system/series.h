// Every series that was sampled: a row of a table each, and its curve to be drawn.
#pragma once

#include <vector>

#include "analyze/system/ranks.h"
#include "model/answer.h"

namespace stepscope::analyze::telemetry {

// Gauges as they are, counters as rates. A series is said to be of a rank where it tells about it: its own, those of
// its GPU, and those of its machine. All curves together have a limited number of points, however many and long the
// series are; a note says what was thinned.
void add_series(const std::vector<Sampled>& all, const std::vector<RankSystem>& ranks, Answer& answer);

}  // namespace stepscope::analyze::telemetry
