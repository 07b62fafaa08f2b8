#include "model/buckets.h"

#include <algorithm>
#include <cstdint>

namespace stepscope {

std::vector<Interval> buckets_of(Interval window) {
  if (window.end <= window.start) return {};
  const std::uint64_t whole = static_cast<std::uint64_t>(window.end) - static_cast<std::uint64_t>(window.start);
  const auto width = static_cast<std::int64_t>((whole + kBuckets - 1) / kBuckets);
  std::vector<Interval> buckets;
  std::int64_t at = window.start;
  for (; window.end - at > width && buckets.size() + 1 < kBuckets; at += width) buckets.push_back({at, at + width});
  buckets.push_back({at, window.end});
  return buckets;
}

void spread(std::vector<double>& sums, const std::vector<Interval>& buckets, Interval when, double weight) {
  if (buckets.empty() || when.start < buckets.front().start) return;
  const std::int64_t width = buckets.front().end - buckets.front().start;
  auto at = static_cast<std::size_t>((when.start - buckets.front().start) / width);
  for (; at < buckets.size() && buckets[at].start < when.end; at++) {
    sums[at] +=
        weight * static_cast<double>(std::min(buckets[at].end, when.end) - std::max(buckets[at].start, when.start));
  }
}

}  // namespace stepscope
