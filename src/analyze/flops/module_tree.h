// The modules of a trace as a tree by their paths, with the products of each.
//
// A product belongs to the innermost module around it; one of a backward pass to that of the forward operator whose
// gradient it is. The hooks' ranges have whole paths ("layers.0.attn"), which are cut at their dots, so that a shared
// module stands at its own place whoever calls it, and a list of modules that nobody calls has what is in it. Frames
// and annotations have names only: their path is the ranges around them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costs/sums.h"

namespace stepscope::analyze::flops {

using costs::FlopSum;
using costs::Products;

struct ModuleNode {
  static constexpr std::uint32_t none = 0xffffffff;

  std::string path;
  StringId type = StringId::none;  // its class; none: not recorded, or never called
  std::uint32_t parent = none;
  std::uint32_t depth = 0;
  std::uint64_t calls = 0;
  std::optional<std::int64_t> forward_ns;  // of its calls, see module_times.h; nothing: none in forward
  FlopSum own, total;                      // own: without the modules below it
};

struct ModuleTree {
  std::vector<ModuleNode> nodes;
  FlopSum outside;  // products in no module
};

ModuleTree module_tree(const Trace& trace, const Products& products);

}  // namespace stepscope::analyze::flops
