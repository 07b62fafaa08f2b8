// What every instant of a step belongs to: one part each, so that the parts of a step add up to its wall time.
//
// Order of priority (the TensorBoard plugin's): kernel > copy > set > communication > runtime > data loader > CPU op >
// other. "kernel" is compute and unclassified device work; a kernel of class communication counts as communication, so
// that part is what no kernel, copy or fill hides. Host parts are unions over all host threads.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/intervals.h"
#include "model/answer_parts.h"
#include "model/windows.h"

namespace stepscope {

enum class StepPart : std::uint8_t { kernel, copy, set, communication, runtime, dataloader, cpu_op, other };
inline constexpr std::size_t kStepParts = 8;
std::string_view to_string(StepPart part);
std::string_view meaning_of(StepPart part);

using PartTimes = std::array<std::int64_t, kStepParts>;
using PhaseTimes = std::array<std::int64_t, kPhases>;

struct StepTimes {
  std::size_t step = 0;        // index into Trace::steps
  Interval wall;               // see step_walls
  PartTimes parts{};           // sum: wall.end - wall.start
  PhaseTimes host_phases{};    // each instant of host time in the most specific phase that any thread was in
  PhaseTimes device_phases{};  // union of the device work of each phase; phases may overlap
};

// What the host did in each phase; where threads are in several at once, the most specific one. Disjoint.
std::array<Intervals, kPhases> host_phases(const Trace& trace);

std::vector<StepTimes> step_times(const Trace& trace, const RankTime& time);

// Walls of the steps that are not cut, sorted by length.
std::vector<std::int64_t> whole_walls(const Trace& trace, const std::vector<StepTimes>& steps);
// Half the distance between the 10th and 90th percentile over the median; unknown below two steps.
Value step_spread(const std::vector<std::int64_t>& sorted_walls);

}  // namespace stepscope
