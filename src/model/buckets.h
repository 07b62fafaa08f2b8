// A window cut into equal pieces, and amounts spread over them: what changes over time, for charts.
#pragma once

#include <cstddef>
#include <vector>

#include "base/intervals.h"

namespace stepscope {

inline constexpr std::size_t kBuckets = 200;

// At most kBuckets equal pieces (the last one may be shorter); none of an empty window.
std::vector<Interval> buckets_of(Interval window);

// Adds to the sum of each bucket `weight` times how long `when` lies in it. `when` must not start before the first.
void spread(std::vector<double>& sums, const std::vector<Interval>& buckets, Interval when, double weight);

}  // namespace stepscope
