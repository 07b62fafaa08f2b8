// Sets of time as sorted, disjoint, half-open intervals [start, end): the arithmetic behind busy, idle, hidden,
// exposed.
//
// Expected workload: up to 10^6 intervals a set, made once from nearly sorted rows and then only combined; every
// operation is one linear walk. Touching intervals merge and empty ones vanish, so two equal sets are equal vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace stepscope {

struct Interval {
  std::int64_t start = 0;
  std::int64_t end = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

// Sorted, disjoint, not touching, none empty. Every function below takes and returns such sets.
using Intervals = std::vector<Interval>;

// Makes a set of arbitrary intervals: sorts where needed, merges, drops those with end <= start.
Intervals make_intervals(std::vector<Interval> any);

Intervals unite(std::span<const Interval> a, std::span<const Interval> b);
Intervals intersect(std::span<const Interval> a, std::span<const Interval> b);
Intervals subtract(std::span<const Interval> a, std::span<const Interval> b);

std::int64_t length(std::span<const Interval> set);
// length(intersect(a, b)) without making the set.
std::int64_t shared_length(std::span<const Interval> a, std::span<const Interval> b);
// For each window (sorted by start, disjoint, empty ones allowed): how much of `set` lies in it.
std::vector<std::int64_t> lengths_in(std::span<const Interval> set, std::span<const Interval> windows);

// How much of each interval of a series lies in a set. The series comes by start and may overlap itself; the set must
// live as long as the sweep.
class IntervalSweep {
 public:
  explicit IntervalSweep(const Intervals& set) : set_(set) {}
  std::int64_t part_of(Interval when) {
    while (first_ < set_.size() && set_[first_].end <= when.start) first_++;
    std::int64_t sum = 0;
    for (std::size_t i = first_; i < set_.size() && set_[i].start < when.end; i++) {
      sum += std::min(set_[i].end, when.end) - std::max(set_[i].start, when.start);
    }
    return sum;
  }

 private:
  const Intervals& set_;
  std::size_t first_ = 0;
};

}  // namespace stepscope
