// What the samples of the ranks say is wrong.
#pragma once

#include <vector>

#include "analyze/system/phase_work.h"
#include "analyze/system/ranks.h"
#include "model/answer.h"

namespace stepscope::analyze::telemetry {

void find_causes(const std::vector<RankSystem>& ranks, const std::vector<PhaseWork>& work, Answer& answer);

}  // namespace stepscope::analyze::telemetry
