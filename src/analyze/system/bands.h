// When the steps and phases of each rank were, to be drawn behind its series.
#pragma once

#include <vector>

#include "analyze/system/ranks.h"
#include "model/answer.h"

namespace stepscope::analyze::telemetry {

// Of each rank with steps the bands "steps" and "phases". Steps too narrow to be told apart on a page are one band
// ("120–127"), and of the phases in it each has its share, in place of when it was: a job of a million steps has no
// more bands than one of some hundred. Time of a step outside of its phases is in no band of "phases".
void add_bands(const std::vector<RankSystem>& ranks, Interval sampled, Answer& answer);

}  // namespace stepscope::analyze::telemetry
