#include "model/module_paths.h"

#include <algorithm>

#include "model/lookup.h"

namespace stepscope {
namespace {

bool is_model(const Trace& trace, const ModuleCall& call) {
  const std::string_view name = trace.strings[call.name], type = trace.strings[call.type];
  return name.starts_with(type) && (name.size() == type.size() || name[type.size()] == '#');
}

constexpr std::uint32_t kDeepest = 64;  // what is deeper belongs to the module at this depth

}  // namespace

ModulePaths::ModulePaths(const Trace& trace) : trace_(trace) {
  if (trace.modules.empty()) return;
  row_at_.assign(trace.slices.size(), none);
  node_at_.assign(trace.modules.size(), none);
  for (std::uint32_t row = 0; row < trace.modules.size(); row++) {
    row_at_[static_cast<std::size_t>(trace.modules[row].slice)] = row;
  }
  for (const Backward& link : trace.backward) forward_.try_emplace(link.backward, link.forward);
  find_root();
  for (const SliceId slice : trace.by_track) {  // callers before what they call
    const std::uint32_t row = row_at_[static_cast<std::size_t>(slice)];
    if (row == none) continue;
    Node& found = nodes_[place(row)];
    if (found.type == StringId::none) found.type = trace.modules[row].type;
  }
}

bool is_range_of_hooks(const Trace& trace, SliceId slice) {
  const CategoryId category = trace.slices.category[slice];
  return category != CategoryId::none &&
         trace.strings[trace.categories[static_cast<std::size_t>(category)].name] == "module" &&
         trace.kind(slice) == SliceKind::user_annotation;
}

bool ModulePaths::has_path(SliceId slice) const { return is_range_of_hooks(trace_, slice); }

// The hooks call the model itself by its class, and the modules in it by their paths within it. Of several models
// every path begins with the class, and where two have the same, with a number behind it: "Stage#2.layers.0".
void ModulePaths::find_root() {
  constexpr std::size_t kMostModels = 64;  // a program has a few
  std::set<StringId> models;
  for (const ModuleCall& call : trace_.modules) {
    if (call.type == StringId::none || !is_model(trace_, call) || !has_path(call.slice)) continue;
    if (call_around(call.slice) != none) continue;
    models.insert(call.name);
    if (models.size() > kMostModels) return;
  }
  // Of one model, with others beside it, the paths are within it, and only theirs begin with a class.
  const auto is_prefix = [&](StringId name) {
    const std::string prefix = std::string(trace_.strings[name]) + ".";
    return std::any_of(trace_.modules.begin(), trace_.modules.end(),
                       [&](const ModuleCall& call) { return trace_.strings[call.name].starts_with(prefix); });
  };
  const auto has_bare_paths = [&](StringId name) { return models.size() == 1 || !is_prefix(name); };
  if (std::count_if(models.begin(), models.end(), has_bare_paths) == 1) {
    root_ = *std::find_if(models.begin(), models.end(), has_bare_paths);
    for (const StringId name : models) {
      if (name != root_) beside_.emplace(trace_.strings[name]);
    }
  }
}

std::uint32_t ModulePaths::innermost(SliceId at) const {
  for (int level = 0; at != SliceId::none && level < kDeepestWalk; level++, at = trace_.slices.parent[at]) {
    if (const std::uint32_t row = row_at_[static_cast<std::size_t>(at)]; row != none) return row;
  }
  return none;
}

std::uint32_t ModulePaths::call_around(SliceId slice) const { return innermost(trace_.slices.parent[slice]); }

std::uint32_t ModulePaths::node_in_model(std::string_view path) const {
  for (std::size_t end = path.size(); end != path.npos && end > 0; end = path.rfind('.', end - 1)) {
    if (const auto found = index_.find(std::string(path.substr(0, end))); found != index_.end()) return found->second;
  }
  return none;
}

std::uint32_t ModulePaths::node_at(std::string_view path) const {
  if (const std::uint32_t found = node_in_model(path); found != none) return found;
  const auto model = index_.find(std::string(trace_.strings[root_]));
  return root_ == StringId::none || model == index_.end() ? none : model->second;
}

std::uint32_t ModulePaths::node_of(SliceId slice) const {
  if (nodes_.empty() || slice == SliceId::none) return none;
  std::uint32_t row = innermost(slice);
  if (row == none) row = innermost(forward_of(slice));
  return row == none ? none : node_at_[row];
}

// The node of autograd has the number of its forward operator, or what runs as the node does (FSDP's hooks take it from
// the node).
SliceId ModulePaths::forward_of(SliceId slice) const {
  for (int level = 0; slice != SliceId::none && level < kDeepestWalk; level++, slice = trace_.slices.parent[slice]) {
    if (const auto found = forward_.find(slice); found != forward_.end()) return found->second;
  }
  return SliceId::none;
}

std::uint32_t ModulePaths::node(const std::string& path, std::uint32_t parent) {
  if (parent != none && nodes_[parent].depth >= kDeepest) return parent;
  const auto [known, fresh] = index_.try_emplace(path, static_cast<std::uint32_t>(nodes_.size()));
  if (fresh) {
    const std::uint32_t depth = parent == none ? 0 : nodes_[parent].depth + 1;
    nodes_.push_back({.path = path, .parent = parent, .depth = depth});
  }
  return known->second;
}

std::uint32_t ModulePaths::node_of_path(std::string_view path) {
  const std::string_view root = trace_.strings[root_];
  const bool in_root = root_ != StringId::none && !beside_.contains(path.substr(0, path.find('.')));
  std::uint32_t at = in_root ? node(std::string(root), none) : none;
  if (in_root && path == root) return at;
  for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
    at = node(std::string(path.substr(0, end)), at);
    if (end == path.npos || nodes_[at].depth >= kDeepest) return at;
  }
}

std::uint32_t ModulePaths::node_of_name(const ModuleCall& call) {
  const std::uint32_t caller = call_around(call.slice);
  const std::string name(trace_.strings[call.name]);
  if (caller == none) return node(name, none);
  const std::uint32_t above = place(caller);
  return node(nodes_[above].path + "." + name, above);
}

std::uint32_t ModulePaths::place(std::uint32_t row) {
  if (node_at_[row] != none) return node_at_[row];
  const ModuleCall& call = trace_.modules[row];
  return node_at_[row] = has_path(call.slice) ? node_of_path(trace_.strings[call.name]) : node_of_name(call);
}

}  // namespace stepscope
