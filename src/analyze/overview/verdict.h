// Where the device's time goes: parts that add up to the window to the nanosecond, and one finding that names the
// largest of them. Whatever else a report says of the same window has to agree with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/answer.h"
#include "model/windows.h"

namespace stepscope::analyze::overview {

using Parts = std::vector<std::pair<std::string, std::int64_t>>;

// Each instant of the window belongs to one part: compute, communication that no compute hides, unclassified work,
// copies, fills, else idle by its cause.
Parts device_parts(const Trace& trace, const DeviceTime& device, const Intervals& window);

// nullopt: there is no device work in the window.
std::optional<Finding> verdict(const std::vector<RankTime>& ranks, bool steps);

}  // namespace stepscope::analyze::overview
