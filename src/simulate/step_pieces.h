// The pieces of the thread of the steps, as each step has them again: what a slice does until the one that follows it.
#pragma once

#include <cstdint>
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

// The last of `steps` that had begun by then; the number of all: there is none.
std::size_t step_begun_at(const std::vector<Step>& steps, std::int64_t time_ns);

}  // namespace stepscope::simulate
