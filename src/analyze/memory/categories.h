// What memory is used for, over time and at the peak.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "analyze/memory/held.h"

namespace stepscope::analyze::memory {

// Bytes of each category after every event of the device; what no allocation of the recording explains is unknown.
struct CategoryCurves {
  std::array<Curve, kMemoryCategories> of;
};
CategoryCurves category_curves(const Held& held);

// The chart in which the categories of the device are drawn, and all of it above them.
std::string chart_of(const Held& held);

// Tables by_category and evidence, series for the chart, scalar unknown_share.
void add_categories(Answer& answer, const std::vector<Held>& all);

}  // namespace stepscope::analyze::memory
