// The parts of a step that its marks tell apart: what recording adds to each of them differs. In a pass that autograd
// or modules are part of, more is noted, and hooked, than in a loop of the program's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/intervals.h"
#include "model/trace.h"

namespace stepscope::simulate {

enum class Part : std::uint8_t { forward, backward, optimizer, rest };
inline constexpr std::size_t kParts = 4;
using Parts = std::array<double, kParts>;

// When a thread was in each of them. A forward pass within a backward one is a part of it; both within an optimizer's
// step (its closure) are none of that.
struct MarkedParts {
  Intervals forward, backward, optimizer;

  // Of ranges as they were marked; those of the rest count for nothing.
  static MarkedParts of(std::array<std::vector<Interval>, kParts> ranges);
  Part at(std::int64_t time_ns) const;
};

// By the ranges of the hooks in a recording, on the clock of its file.
MarkedParts recorded_parts(const Trace& trace);

// Per step of the marks of a job, in ns; `uneven_ns` of each step is in none of them.
std::vector<Parts> parts_of_steps(const Trace& history, const std::vector<double>& uneven_ns);

}  // namespace stepscope::simulate
