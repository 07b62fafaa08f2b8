// The modules of a trace (model/module_paths.h) with the products, calls and times of each.
//
// A product belongs to the innermost module around it; one of a backward pass to that of the forward operator whose
// gradient it is.
#pragma once

#include <optional>
#include <vector>

#include "costs/sums.h"
#include "model/module_paths.h"

namespace stepscope::analyze::flops {

using costs::FlopSum;
using costs::Products;

struct ModuleNode {
  ModulePaths::Node place;
  std::uint64_t calls = 0;
  std::optional<std::int64_t> forward_ns;  // of its calls, see module_times.h; nothing: none in forward
  std::optional<std::int64_t> parameters;  // with those of the modules below it; nothing: not recorded
  FlopSum own, total;                      // own: without the modules below it
};

struct ModuleTree {
  std::vector<ModuleNode> nodes;  // parents first
  FlopSum outside;                // products in no module
};

ModuleTree module_tree(const Trace& trace, const Products& products);

}  // namespace stepscope::analyze::flops
