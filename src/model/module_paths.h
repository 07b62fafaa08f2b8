// The modules of a trace as a tree by their paths, and the module that a slice belongs to.
//
// The hooks' ranges have whole paths ("layers.0.attn"), which are cut at their dots, so that a shared module stands at
// its own place whoever calls it, and a list of modules that nobody calls has what is in it. Frames and annotations
// have names only: their path is the ranges around them.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"

namespace stepscope {

// A module's call as our hooks note it, by a category of its own: only these have whole paths.
bool is_range_of_hooks(const Trace& trace, SliceId slice);

class ModulePaths {
 public:
  static constexpr std::uint32_t none = 0xffffffff;

  struct Node {
    std::string path;
    StringId type = StringId::none;  // its class; none: not recorded, or never called
    std::uint32_t parent = none;     // stands before it
    std::uint32_t depth = 0;
  };

  // Needs what derive adds. `trace` outlives this.
  explicit ModulePaths(const Trace& trace);

  const std::vector<Node>& nodes() const { return nodes_; }
  // The node of a row of Trace::modules.
  std::uint32_t node_of_call(std::uint32_t row) const { return node_at_[row]; }
  // The row of Trace::modules innermost around the slice, not itself; or none.
  std::uint32_t call_around(SliceId slice) const;
  // Of what runs in a backward pass the forward operator whose gradient it is; none: it is not known.
  SliceId forward_of(SliceId slice) const;
  // The node of a path, or the innermost that would be around it; none: there is none at all.
  std::uint32_t node_at(std::string_view path) const;
  // The same for a module of the model that the path begins with, whether or not it is the root.
  std::uint32_t node_in_model(std::string_view path) const;
  // The node that the slice belongs to, or none: that of the innermost module around it; of what runs in a backward
  // pass, that of the forward operator whose gradient it is.
  std::uint32_t node_of(SliceId slice) const;

 private:
  bool has_path(SliceId slice) const;
  void find_root();
  std::uint32_t innermost(SliceId at) const;
  std::uint32_t node(const std::string& path, std::uint32_t parent);
  std::uint32_t node_of_path(std::string_view path);
  std::uint32_t node_of_name(const ModuleCall& call);
  std::uint32_t place(std::uint32_t row);

  const Trace& trace_;
  std::vector<std::uint32_t> row_at_;             // per slice: the call of a module that it is
  std::unordered_map<SliceId, SliceId> forward_;  // of what has its number in backward
  StringId root_ = StringId::none;                // the class of the model that paths are within
  std::set<std::string, std::less<>> beside_;     // other models: what is in them has paths that begin so
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<std::uint32_t> node_at_;  // per row of Trace::modules
};

}  // namespace stepscope
