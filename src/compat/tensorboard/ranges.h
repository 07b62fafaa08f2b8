// Sets of time in microseconds, as the TensorBoard plugin reads them from the file: the arithmetic of base/intervals.h,
// but in the doubles that its sums are made of.
#pragma once

#include <vector>

namespace stepscope::compat::tensorboard {

struct Range {
  double start = 0, end = 0;
};
using Ranges = std::vector<Range>;  // sorted and disjoint, once united

Ranges united(Ranges any);
Ranges common(const Ranges& a, const Ranges& b);
Ranges without(const Ranges& a, const Ranges& b);
double total(const Ranges& ranges);

}  // namespace stepscope::compat::tensorboard
