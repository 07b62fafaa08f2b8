// Sorting of what is nearly sorted already: events of a file are a few ascending runs per thread, so finding the runs
// and merging them costs little more than one look. Stable; O(n log n) whatever the input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepscope::derive {

template <class T, class Less>
void sort_runs(std::vector<T>& values, Less less) {
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 1; i < values.size(); i++)
    if (less(values[i], values[i - 1])) begins.push_back(i);
  if (begins.size() == 1) return;
  if (begins.size() > values.size() / 8) {  // no order worth keeping
    std::stable_sort(values.begin(), values.end(), less);
    return;
  }
  std::vector<T> merged(values.size());
  while (begins.size() > 1) {
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i < begins.size(); i += 2) {
      next.push_back(begins[i]);
      const auto at = [&](std::size_t run) {
        return values.begin() + static_cast<std::ptrdiff_t>(run < begins.size() ? begins[run] : values.size());
      };
      const auto out = merged.begin() + static_cast<std::ptrdiff_t>(begins[i]);
      std::merge(at(i), at(i + 1), at(i + 1), at(i + 2), out, less);
    }
    values.swap(merged);
    begins.swap(next);
  }
}

}  // namespace stepscope::derive
