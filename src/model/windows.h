// Device time of a rank, collected once per analysis: which work ran on which device, its busy union, the union of each
// class, and the two windows in which everything is measured.
//
// span:  first start to last end of device work of the device.
// steps: the whole (not cut) steps of the rank, each extended to the end of the device work it launched; empty when the
//        trace has none.
// Device rows that name no device belong to the only device of their rank, if there is just one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/intervals.h"
#include "model/trace.h"

namespace stepscope {

struct DeviceTime {
  std::int64_t rank = 0;
  std::int32_t device = -1;
  std::vector<std::uint32_t> rows;  // rows of Trace::device that are work, by start
  Interval span;
  Intervals busy;
  std::array<Intervals, kDeviceClasses> classes;
  std::int64_t work_ns = 0;  // sum of durations, overlaps counted as often as they occur
  Intervals steps;           // the steps window of the rank, the same for all its devices

  const Intervals& of(DeviceClass wanted) const { return classes[static_cast<std::size_t>(wanted)]; }
};

struct RankTime {
  const Trace* trace = nullptr;
  std::int64_t rank = 0;
  std::vector<DeviceTime> devices;  // by device number; only those with work
  Intervals steps;
  std::size_t whole_steps = 0;
};

// The traces that say when things ran. Execution traces, which do not, stand behind them in the run; where there is
// nothing else, they are all.
std::span<const Trace> timelines(const Run& run);

RankTime rank_time(const Trace& trace);
std::vector<RankTime> rank_times(const Run& run);

// True when the headline of the run is about its steps: every rank with device work has at least two whole ones.
bool headline_is_steps(const std::vector<RankTime>& ranks);

// The step as it is accounted: from its mark, or from where the step before ended on the device if that is later, to
// the end of its own device work. Disjoint and ascending, so that the walls of the steps never count an instant twice.
std::vector<Interval> step_walls(const Trace& trace);

// Is anything known of steps? Else the whole recording stands for one (derive/steps.cc).
bool has_steps(const Trace& trace);

// The rows of `trace.device` that are work, in order of their start.
std::vector<std::uint32_t> work_by_start(const Trace& trace);

}  // namespace stepscope
