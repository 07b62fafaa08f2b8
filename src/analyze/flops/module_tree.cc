#include "analyze/flops/module_tree.h"

#include "analyze/flops/module_times.h"

namespace stepscope::analyze::flops {

using costs::add_up;
using costs::Product;

namespace {

// Is the call made within another call of the same module?
bool within_itself(const Trace& trace, const ModulePaths& paths, std::uint32_t row) {
  const std::uint32_t node = paths.node_of_call(row);
  for (row = paths.call_around(trace.modules[row].slice); row != ModulePaths::none;
       row = paths.call_around(trace.modules[row].slice)) {
    if (paths.node_of_call(row) == node) return true;
  }
  return false;
}

void add_calls(std::vector<ModuleNode>& nodes, const Trace& trace, const ModulePaths& paths) {
  const std::vector<std::optional<std::int64_t>> times = forward_times(trace);
  for (std::uint32_t row = 0; row < trace.modules.size(); row++) {
    ModuleNode& node = nodes[paths.node_of_call(row)];
    node.calls++;
    if (times[row] && !within_itself(trace, paths, row))
      node.forward_ns = add_up(node.forward_ns.value_or(0), *times[row]);
  }
}

// Those of a module that is no node, as nobody called it, belong to the one around it.
void add_parameters(std::vector<ModuleNode>& nodes, const Trace& trace, const ModulePaths& paths) {
  if (trace.module_sizes.empty()) return;
  for (ModuleNode& node : nodes) node.parameters = 0;
  for (const ModuleSize& size : trace.module_sizes) {
    const std::uint32_t own = size.beside != 0 ? paths.node_in_model(size.path) : paths.node_at(size.path);
    for (std::uint32_t at = own; at != ModulePaths::none; at = nodes[at].place.parent)
      nodes[at].parameters = add_up(*nodes[at].parameters, size.parameters);
  }
}

}  // namespace

ModuleTree module_tree(const Trace& trace, const Products& products) {
  const ModulePaths paths(trace);
  ModuleTree tree;
  for (const ModulePaths::Node& place : paths.nodes()) tree.nodes.push_back({.place = place});
  if (!tree.nodes.empty()) add_calls(tree.nodes, trace, paths);
  add_parameters(tree.nodes, trace, paths);
  for (const Product& product : products.all) {
    std::uint32_t at = paths.node_of(product.slice);
    if (at == ModulePaths::none) {
      tree.outside.add(product);
      continue;
    }
    tree.nodes[at].own.add(product);
    for (; at != ModulePaths::none; at = tree.nodes[at].place.parent) tree.nodes[at].total.add(product);
  }
  return tree;
}

}  // namespace stepscope::analyze::flops
