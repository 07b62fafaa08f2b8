// The steps of all ranks: what was counted in each, and how much of the device's peak that is (MFU, HFU).
#pragma once

#include "costs/rank_costs.h"

namespace stepscope::analyze::flops {

using costs::RankCosts;

// Adds the table steps, the scalars step_flop, mfu and hfu with their causal kin, the table peaks, and notes where a
// figure is refused.
void add_steps(Answer& answer, const std::vector<RankCosts>& ranks);

}  // namespace stepscope::analyze::flops
