// The steps of all ranks: what was counted in each, and how much of the device's peak that is (MFU, HFU).
#pragma once

#include "analyze/flops/rank_flops.h"

namespace stepscope::analyze::flops {

// Adds the table steps, the scalars step_flop, mfu and hfu with their causal kin, the table peaks, and notes where a
// figure is refused.
void add_steps(Answer& answer, const std::vector<RankFlops>& ranks);

}  // namespace stepscope::analyze::flops
