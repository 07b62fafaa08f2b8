// The slices of a track as a stack over time: what begins and ends in the order in which a flame graph draws it.
//
// Slices that overlap without nesting (the model keeps them) are cut at the end of what encloses them, because a stack
// cannot hold them otherwise; every writer of stacks shares this rule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stepscope {

struct StackVisitor {
  std::function<void(SliceId slice, std::int64_t at_ns)> open;
  std::function<void(SliceId slice, std::int64_t at_ns)> close;
};

// Which slices belong to the stack; the others are as if they were not there.
using SliceTest = std::function<bool(const Trace& trace, SliceId slice)>;

// Needs a derived trace.
void visit_stacks(const Trace& trace, std::size_t track, const SliceTest& wanted, const StackVisitor& visitor);

// Operators, Python functions, annotations and calls of the device's runtime: what a host thread was doing.
bool is_host_work(const Trace& trace, SliceId slice);

// "python (4242) thread 7", as far as the recording names them.
std::string track_label(const Trace& trace, std::size_t track);

}  // namespace stepscope
