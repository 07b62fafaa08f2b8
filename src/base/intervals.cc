#include "base/intervals.h"

#include <algorithm>
#include <cstddef>

namespace stepscope {
namespace {

bool starts_before(const Interval& a, const Interval& b) { return a.start < b.start; }

// Rows come as a few ascending runs (one per stream or thread): merging them is linear, sorting would not be.
void sort_runs(std::vector<Interval>& rows) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < rows.size(); i++) {
    if (starts_before(rows[i], rows[i - 1])) ends.push_back(i);
  }
  if (ends.empty()) return;
  if (ends.size() > 64) {
    std::sort(rows.begin(), rows.end(), starts_before);
    return;
  }
  ends.push_back(rows.size());
  while (ends.size() > 1) {
    std::vector<std::size_t> merged;
    std::size_t begin = 0;
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      const auto at = [&](std::size_t k) { return rows.begin() + static_cast<std::ptrdiff_t>(k); };
      std::inplace_merge(at(begin), at(ends[i]), at(ends[i + 1]), starts_before);
      begin = ends[i + 1];
      merged.push_back(begin);
    }
    if (ends.size() % 2 == 1) merged.push_back(ends.back());
    ends = std::move(merged);
  }
}

void add(Intervals& out, Interval next) {
  if (next.end <= next.start) return;
  if (!out.empty() && next.start <= out.back().end) {
    out.back().end = std::max(out.back().end, next.end);
  } else {
    out.push_back(next);
  }
}

}  // namespace

Intervals make_intervals(std::vector<Interval> any) {
  sort_runs(any);
  Intervals out;
  for (const Interval& next : any) add(out, next);
  return out;
}

Intervals unite(std::span<const Interval> a, std::span<const Interval> b) {
  Intervals out;
  out.reserve(a.size() + b.size());
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool take_a = j == b.size() || (i < a.size() && a[i].start <= b[j].start);
    add(out, take_a ? a[i++] : b[j++]);
  }
  return out;
}

Intervals intersect(std::span<const Interval> a, std::span<const Interval> b) {
  Intervals out;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].start, b[j].start), std::min(a[i].end, b[j].end)};
    if (both.start < both.end) out.push_back(both);
    (a[i].end < b[j].end ? i : j)++;
  }
  return out;
}

Intervals subtract(std::span<const Interval> a, std::span<const Interval> b) {
  Intervals out;
  std::size_t j = 0;
  for (const Interval& whole : a) {
    std::int64_t from = whole.start;
    while (j < b.size() && b[j].end <= from) j++;
    for (std::size_t k = j; k < b.size() && b[k].start < whole.end; k++) {
      if (b[k].start > from) out.push_back({from, b[k].start});
      from = std::max(from, b[k].end);
      j = k;  // the last one may reach into the next interval of `a`
    }
    if (from < whole.end) out.push_back({from, whole.end});
  }
  return out;
}

std::int64_t length(std::span<const Interval> set) {
  std::int64_t sum = 0;
  for (const Interval& one : set) sum += one.end - one.start;
  return sum;
}

std::int64_t shared_length(std::span<const Interval> a, std::span<const Interval> b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t both = std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start);
    if (both > 0) sum += both;
    (a[i].end < b[j].end ? i : j)++;
  }
  return sum;
}

std::vector<std::int64_t> lengths_in(std::span<const Interval> set, std::span<const Interval> windows) {
  std::vector<std::int64_t> out(windows.size(), 0);
  std::size_t first = 0;
  for (std::size_t w = 0; w < windows.size(); w++) {
    while (first < set.size() && set[first].end <= windows[w].start) first++;
    for (std::size_t i = first; i < set.size() && set[i].start < windows[w].end; i++) {
      out[w] +=
          std::max<std::int64_t>(0, std::min(set[i].end, windows[w].end) - std::max(set[i].start, windows[w].start));
    }
  }
  return out;
}

}  // namespace stepscope
