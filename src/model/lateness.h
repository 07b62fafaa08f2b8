// Which rank the others wait for: how late each rank comes to the collectives that need all of them.
//
// Lateness = arrival − median arrival on the run's clock (with an even number of ranks the lower of the two in the
// middle). A collective sets all its ranks even, so lateness at the next one was lost since; lateness of a step is the
// sum over its collectives. What is within the bound of the clocks is noise and counts as none.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stepscope {

struct StepLateness {
  std::int64_t step = 0;     // number of the step where steps have numbers, else its index; kOutside
  std::int64_t late_ns = 0;  // sum over the collectives of the step
  bool worst = false;        // no rank lost more in this step
};

struct RankLateness {
  std::int64_t total_ns = 0;
  std::int64_t collectives = 0;          // that it shared with others
  std::int64_t late_collectives = 0;     // to which it came later than the bound
  std::int64_t last_collectives = 0;     // of these, to which it came last of all
  std::int64_t first_late_ns = kAbsent;  // on the run's clock: when it was late for the first time
  std::vector<StepLateness> steps;       // those in which it shared collectives, by number
};

inline constexpr std::int64_t kOutsideSteps = INT64_MIN;

// Per trace; empty when nothing can be told: fewer than two ranks, no shared collectives, or clocks that are not known
// from collectives.
std::vector<RankLateness> lateness(const Run& run);

// The number that a step has on all ranks.
std::int64_t step_number(const Trace& trace, std::size_t step);

}  // namespace stepscope
