// Is it always the same rank, or a different one by chance?
#pragma once

#include <cmath>
#include <cstddef>

namespace stepscope {

// A rank that is the last of `ranks` in `last_in` of `steps`: more often than ranks that are alike would be in one job
// of six or so (one standard deviation of even chances, and half of the steps at least).
inline bool is_always_the_same(std::size_t last_in, std::size_t steps, std::size_t ranks) {
  if (steps == 0 || ranks < 2) return steps == 0;
  const double share = static_cast<double>(last_in) / static_cast<double>(steps);
  const double chance = 1.0 / static_cast<double>(ranks);
  return share > 0.5 && share >= chance + 1.0 / std::sqrt(static_cast<double>(steps)) - 1e-9;
}

}  // namespace stepscope
