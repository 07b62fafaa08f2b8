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

// What held steps up, which made pieces of them longer than the same ones are in others.
struct HeldUp {
  std::map<std::size_t, std::int64_t> most_ns;     // by the index of the step in Trace::steps: no more than that
  std::function<bool(std::uint32_t)> may_be = {};  // nodes that it may have met; empty: all
  bool others_have_it = false;                     // pieces that hardly another step has are their step's own work
};

// Adds to `taken_ns`, node by node, what pieces of these steps take longer than the middle one of the same among all
// steps, of what is longer by most first.
void take_off_longer(const Run& run, const ReplayGraph& graph, const StepWindow& window, const HeldUp& held,
                     std::vector<std::int64_t>& taken_ns);

// The last of `steps` that had begun by then; the number of all: there is none.
std::size_t step_begun_at(const std::vector<Step>& steps, std::int64_t time_ns);

}  // namespace stepscope::simulate
