#include "compat/tensorboard/ranges.h"

#include <algorithm>

namespace stepscope::compat::tensorboard {

Ranges united(Ranges any) {
  std::stable_sort(any.begin(), any.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
  Ranges out;
  for (const Range& range : any) {
    if (out.empty() || range.start > out.back().end) {
      out.push_back(range);
    } else {
      out.back().end = std::max(out.back().end, range.end);
    }
  }
  return out;
}

Ranges common(const Ranges& a, const Ranges& b) {
  Ranges out;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double start = std::max(a[i].start, b[j].start), end = std::min(a[i].end, b[j].end);
    if (start < end) out.push_back({start, end});
    a[i].end < b[j].end ? i++ : j++;
  }
  return out;
}

Ranges without(const Ranges& a, const Ranges& b) {
  Ranges out;
  std::size_t j = 0;
  for (Range rest : a) {
    while (j < b.size() && b[j].end <= rest.start) j++;
    for (std::size_t k = j; k < b.size() && b[k].start < rest.end; k++) {
      if (b[k].start > rest.start) out.push_back({rest.start, b[k].start});
      rest.start = std::max(rest.start, b[k].end);
    }
    if (rest.start < rest.end) out.push_back(rest);
  }
  return out;
}

double total(const Ranges& ranges) {
  double sum = 0;
  for (const Range& range : ranges) sum += range.end - range.start;
  return sum;
}

}  // namespace stepscope::compat::tensorboard
