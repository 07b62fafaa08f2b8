// The pieces of the thread of the steps, as each step has them again: what a slice does until the one that follows it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "model/trace.h"
#include "simulate/play.h"

namespace stepscope::simulate {

struct StepPiece {
  std::int64_t ns = 0;  // of a step
  std::vector<std::uint32_t> nodes;
};

// One that steps have again and again: by the index of the step in Trace::steps, of those that have it.
using StepPieces = std::map<std::size_t, StepPiece>;

// Of the thread of `window`, each kind of piece once. `taken_ns`: how much of the cost of each node is left out.
std::vector<StepPieces> step_pieces(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                                    const std::vector<std::int64_t>& taken_ns);

// Adds to `taken_ns`, node by node, what pieces of a step take longer than the middle one of the same among all steps:
// of the step of each number no more than `most_ns` has for it, of what is longer by most first. `is_held_up`: which
// slices it may be taken off; none: the time that no slice has.
void take_off_longer(const Run& run, const ReplayGraph& graph, const StepWindow& window,
                     const std::map<std::int64_t, std::int64_t>& most_ns,
                     const std::function<bool(SliceId)>& is_held_up, std::vector<std::int64_t>& taken_ns);

// The last of `steps` that had begun by then; the number of all: there is none.
std::size_t step_begun_at(const std::vector<Step>& steps, std::int64_t time_ns);

}  // namespace stepscope::simulate
