// Closures: what steps of optimizers call themselves, as Lightning's all do, up to the end of the backward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/trace.h"

namespace stepscope {

struct Closure {
  SliceId optimizer = SliceId::none;  // the range of the step
  std::int64_t end_ns = 0;            // of its first backward pass; the closure begins with the step
};

// Of each step of an optimizer that calls both passes, in the order of Trace::by_track. `phase`: what a slice is by
// itself, for who asks before all slices have theirs.
std::vector<Closure> closures(const Trace& trace, const std::function<Phase(SliceId)>& phase);

}  // namespace stepscope
