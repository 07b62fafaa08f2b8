// Slices of chosen kinds as a tree of call paths: every way in which a name was reached, with its calls, host time and
// the time of the device work launched under it. Under nested annotations and flame graphs.
//
// A node is (node of the caller, name). Names that differ only in a number that changes from call to call (steps,
// memory addresses) count as one, see path_name. Input: up to 10^7 slices; one pass over Trace::by_track, one over
// device work. Autograd runs backward operators on a thread of its own, below nothing: what these launch counts for the
// path in which the thread of the steps stood meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stepscope {

struct PathNode {
  static constexpr std::uint32_t none = 0xffffffff;

  std::uint32_t parent = none;
  SliceId example = SliceId::none;  // the first call
  std::uint32_t depth = 0;
  bool recursive = false;  // a caller of it, near or far, has the same name
  std::uint64_t calls = 0;
  std::uint64_t step_calls = 0;  // started inside whole steps
  std::int64_t total_ns = 0, self_ns = 0, step_ns = 0;
  std::int64_t device_ns = 0, device_self_ns = 0;  // union of the work launched below it, and by it directly
};

struct PathTree {
  std::vector<PathNode> nodes;     // callers before what they call
  std::uint64_t work_outside = 0;  // device work launched below no node
  std::uint64_t too_deep = 0;      // calls that count as part of the one around them

  std::string path(const Trace& trace, std::uint32_t node, std::string_view separator) const;
};

PathTree path_tree(const Trace& trace, std::span<const SliceKind> kinds);

// The sentence about PathTree::too_deep.
std::string too_deep_note(std::uint64_t calls);

// The name without what changes from call to call: "ProfilerStep#*", "<built-in method mm>".
std::string path_name(std::string_view name);

}  // namespace stepscope
