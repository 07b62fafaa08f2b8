// HTA's unions of device time: rows merged while they touch, and the sweep over several unions at once.
#pragma once

#include <vector>

#include "compat/hta/table.h"

namespace stepscope::compat::hta {

struct Span {
  double start = 0, end = 0;
};
// A row begins a new span when it starts after the latest end so far. Negative durations stay as they are.
std::vector<Span> merged(std::vector<Row> rows);
double total(const std::vector<Span>& spans);

// The time for which each sum of active unions held: union i counts 2^i while it is active. Indexed by that sum;
// `seen` marks the sums that occurred, be it for no time.
struct Sweep {
  std::vector<double> time;
  std::vector<bool> seen;
};
Sweep sweep(const std::vector<std::vector<Span>>& unions);

std::vector<Row> of_type(const EventTable& table, const std::vector<Row>& rows, KernelType type);

}  // namespace stepscope::compat::hta
