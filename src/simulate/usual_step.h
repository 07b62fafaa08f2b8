// What steps take that nobody recorded, from the marks of all steps (Run::history).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/intervals.h"
#include "model/trace.h"
#include "simulate/marked_parts.h"
#include "simulate/play.h"

namespace stepscope::simulate {

// Phases that are no work of the model. They differ from step to step, and five recorded steps say little of them: a
// wait for data also takes in what recording adds to the work.
inline constexpr std::array kUneven = {Phase::dataloader, Phase::evaluation, Phase::checkpoint};
using Uneven = std::array<double, kUneven.size()>;

inline std::size_t uneven_index(std::uint8_t phase) {
  return static_cast<std::size_t>(std::find(kUneven.begin(), kUneven.end(), static_cast<Phase>(phase)) -
                                  kUneven.begin());
}

// Per step of the marks, in ns; a phase lies in the step that it began in.
std::vector<Uneven> uneven_phases(const Trace& history);

// Of the mean step where nobody recorded: what the model does, and each of the uneven phases. work_ns 0: not known.
struct UsualStep {
  double work_ns = 0;
  Uneven uneven_ns{};
  std::vector<double> by_length_ns;  // work of the longest step of as many as the window has, of the second …
  // So many of the longest recorded steps are of a kind that comes less than once in a window; what steps of that kind
  // take more than the others, over all steps: count_long_steps() adds it.
  std::size_t now_and_then = 0;
  double now_and_then_ns = 0;
  double shortest_ns = 0;     // work of one of the shortest: in longer ones the host may wait for a device
  Parts parts_ns{};           // of the middle step each; 0: not marked
  Parts shortest_parts_ns{};  // each of the step in which it is shortest: a host that waits does so in any part
  Parts recorded_parts_ns{};  // of the mean recorded step, as its marks have them
};

// Of the rank of `window`, over all series of as many steps as it has, so that what happens every few steps is in them.
// Of the work the median; without a device, where a machine that others use holds up most series, their 30th
// percentile.
UsualStep usual_step(const Run& run, const StepWindow& window);

// Adds the steps that come now and then, so that what is recorded of one counts as often as it comes.
void count_long_steps(UsualStep& usual);

// A clock that is no Unix time says nothing of when a recording was.
bool has_unix_time(const Trace& trace);
// When any of the job was recorded, as Unix time: windows, and the step with frames.
std::vector<Interval> times_recorded(const Run& run);

// Without the tenth at either end.
double middle_mean(std::vector<double> values);

}  // namespace stepscope::simulate
