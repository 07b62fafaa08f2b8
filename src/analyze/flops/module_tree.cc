#include "analyze/flops/module_tree.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/flops/module_times.h"
#include "model/lookup.h"

namespace stepscope::analyze::flops {

using costs::add_up;
using costs::Product;

namespace {

constexpr std::uint32_t kDeepest = 64;  // what is deeper belongs to the module at this depth

class Builder {
 public:
  explicit Builder(const Trace& trace)
      : trace_(trace), row_at_(trace.slices.size(), ModuleNode::none), times_(forward_times(trace)) {
    for (std::uint32_t row = 0; row < trace.modules.size(); row++) {
      row_at_[static_cast<std::size_t>(trace.modules[row].slice)] = row;
    }
    for (const Backward& link : trace.backward) forward_.try_emplace(link.backward, link.forward);
    find_root();
    for (const SliceId slice : trace.by_track) {  // callers before what they call
      const std::uint32_t row = row_at_[static_cast<std::size_t>(slice)];
      if (row != ModuleNode::none) call(row);
    }
  }

  ModuleTree add(const Products& products) {
    for (const Product& product : products.all) {
      const std::uint32_t inner = place_of(product);
      if (inner == ModuleNode::none) {
        tree_.outside.add(product);
        continue;
      }
      tree_.nodes[inner].own.add(product);
      for (std::uint32_t at = inner; at != ModuleNode::none; at = tree_.nodes[at].parent) {
        tree_.nodes[at].total.add(product);
      }
    }
    return std::move(tree_);
  }

 private:
  // Only the hooks' ranges have whole paths; they have a category of their own.
  bool has_path(SliceId slice) const {
    const CategoryId category = trace_.slices.category[slice];
    return category != CategoryId::none &&
           trace_.strings[trace_.categories[static_cast<std::size_t>(category)].name] == "module" &&
           trace_.kind(slice) == SliceKind::user_annotation;
  }

  // The hooks call the model itself by its class, and the modules in it by their paths within it. Of several models
  // every path begins with the class.
  void find_root() {
    for (const ModuleCall& call : trace_.modules) {
      if (call.type == StringId::none || call.name != call.type || !has_path(call.slice)) continue;
      if (around(call.slice) != ModuleNode::none) continue;
      if (root_ != StringId::none && root_ != call.name) {
        root_ = StringId::none;
        return;
      }
      root_ = call.name;
    }
  }

  // The row of the innermost module around the slice; `itself` counts as around it.
  std::uint32_t around(SliceId slice, bool itself = false) const {
    SliceId at = itself ? slice : trace_.slices.parent[slice];
    for (int level = 0; at != SliceId::none && level < kDeepestWalk; level++, at = trace_.slices.parent[at]) {
      if (const std::uint32_t row = row_at_[static_cast<std::size_t>(at)]; row != ModuleNode::none) return row;
    }
    return ModuleNode::none;
  }

  std::uint32_t node(const std::string& path, std::uint32_t parent) {
    if (parent != ModuleNode::none && tree_.nodes[parent].depth >= kDeepest) return parent;
    const auto [known, fresh] = index_.try_emplace(path, static_cast<std::uint32_t>(tree_.nodes.size()));
    if (fresh) {
      const std::uint32_t depth = parent == ModuleNode::none ? 0 : tree_.nodes[parent].depth + 1;
      tree_.nodes.push_back({.path = path, .parent = parent, .depth = depth});
    }
    return known->second;
  }

  std::uint32_t node_of_path(std::string_view path) {
    const std::string_view root = trace_.strings[root_];
    std::uint32_t at = root_ == StringId::none ? ModuleNode::none : node(std::string(root), ModuleNode::none);
    if (root_ != StringId::none && path == root) return at;
    for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
      at = node(std::string(path.substr(0, end)), at);
      if (end == path.npos || tree_.nodes[at].depth >= kDeepest) return at;
    }
  }

  std::uint32_t node_of_name(const ModuleCall& call) {
    const std::uint32_t caller = around(call.slice);
    const std::string name(trace_.strings[call.name]);
    if (caller == ModuleNode::none) return node(name, ModuleNode::none);
    const std::uint32_t above = call_node(caller);
    return node(tree_.nodes[above].path + "." + name, above);
  }

  std::uint32_t call_node(std::uint32_t row) {
    std::uint32_t& known = node_at_.try_emplace(row, ModuleNode::none).first->second;
    if (known != ModuleNode::none) return known;
    const ModuleCall& call = trace_.modules[row];
    const std::uint32_t found = has_path(call.slice) ? node_of_path(trace_.strings[call.name]) : node_of_name(call);
    return node_at_[row] = found;
  }

  void call(std::uint32_t row) {
    const std::uint32_t node = call_node(row);
    ModuleNode& found = tree_.nodes[node];
    found.calls++;
    if (found.type == StringId::none) found.type = trace_.modules[row].type;
    if (times_[row] && !within(row, node)) found.forward_ns = add_up(found.forward_ns.value_or(0), *times_[row]);
  }

  // Is the call made within another call of the same module?
  bool within(std::uint32_t row, std::uint32_t node) {
    for (row = around(trace_.modules[row].slice); row != ModuleNode::none; row = around(trace_.modules[row].slice)) {
      if (call_node(row) == node) return true;
    }
    return false;
  }

  std::uint32_t place_of(const Product& product) {
    std::uint32_t row = around(product.slice);
    if (row == ModuleNode::none && product.node != SliceId::none) row = around(forward_of(product), true);
    return row == ModuleNode::none ? row : call_node(row);
  }

  // The forward operator whose gradient it is: its node of autograd has the number, or what runs as the node does
  // (FSDP's hooks take it from the node). none: not recorded.
  SliceId forward_of(const Product& product) const {
    SliceId at = product.slice;
    for (int level = 0; at != SliceId::none && level < kDeepestWalk; level++, at = trace_.slices.parent[at]) {
      if (const auto found = forward_.find(at); found != forward_.end()) return found->second;
      if (at == product.node) break;
    }
    return SliceId::none;
  }

  const Trace& trace_;
  std::vector<std::uint32_t> row_at_;  // per slice: the call of a module that it is
  std::vector<std::optional<std::int64_t>> times_;
  std::unordered_map<SliceId, SliceId> forward_;
  StringId root_ = StringId::none;
  ModuleTree tree_;
  std::unordered_map<std::string, std::uint32_t> index_;
  std::unordered_map<std::uint32_t, std::uint32_t> node_at_;  // per call
};

}  // namespace

ModuleTree module_tree(const Trace& trace, const Products& products) {
  if (trace.modules.empty()) {
    ModuleTree tree;
    for (const Product& product : products.all) tree.outside.add(product);
    return tree;
  }
  return Builder(trace).add(products);
}

}  // namespace stepscope::analyze::flops
