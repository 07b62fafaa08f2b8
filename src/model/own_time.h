// What ranks do themselves in all steps that are marked, and not only in the few that are recorded: whether one of them
// holds the others up for the whole job, or did by chance.
#pragma once

#include <cstdint>
#include <optional>

#include "model/trace.h"

namespace stepscope {

struct OwnTime {
  std::int64_t forward_ns = 0;           // of the forward pass, the median of all steps
  std::int64_t outside_backward_ns = 0;  // per step, as a mean: what happens every few steps is in it
};

// nullopt: too few steps are marked, or ranks wait for each other outside of their backward passes too, as far as the
// recording shows, so that time there is not their own.
std::optional<OwnTime> own_time(const Run& run, std::int64_t rank);

// Per step, how much more a rank does outside of backward passes than the median of the others; nullopt: not known.
std::optional<std::int64_t> usual_excess_ns(const Run& run, std::int64_t rank);
// Its forward passes, over the median of the others'; nullopt: not known.
std::optional<double> usual_forward_ratio(const Run& run, std::int64_t rank);

}  // namespace stepscope
