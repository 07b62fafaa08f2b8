// The graph of HTA's critical path: a node for the start and one for the end of each event, edges for time spent and
// for dependencies, and the longest path through it.
//
// Expected workload: one step, 10^4 to 10^6 events. Where several paths are equally long, the order in which edges were
// added decides, so that order is part of the definition (that of a networkx.DiGraph: nodes in order of first use; an
// edge added again keeps its place and takes the new type and weight).
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace stepscope::compat::hta {

enum class EdgeType : std::uint8_t { operation, dependency, launch_delay, kernel_delay, sync };

struct PathNode {
  std::uint32_t index = 0;  // of the event
  double ts = 0;
  bool is_start = false;
};

struct PathEdge {
  std::uint32_t from = 0, to = 0;
  EdgeType type = EdgeType::operation;
  double weight = 0;                  // as measured; may be negative where times were rounded
  double counted = 0;                 // never negative: what the longest path adds up
  std::optional<std::int64_t> event;  // that the time is attributed to
};

class PathGraph {
 public:
  std::vector<PathNode> nodes;  // by time; not all of them have edges

  // Adds an edge, or gives a known one this type and weight. Time passes on it unless it is a dependency or zero.
  PathEdge& connect(std::uint32_t from, std::uint32_t to, EdgeType type, bool zero = false);
  const std::vector<PathEdge>& edges() const { return edges_; }
  std::size_t used_nodes() const { return used_.size(); }
  // Edges of the longest path, in its order; unknown when the graph has a cycle.
  std::optional<std::vector<std::uint32_t>> longest_path() const;

 private:
  std::uint32_t use(std::uint32_t node);
  std::optional<std::vector<std::uint32_t>> topological_order() const;

  std::vector<PathEdge> edges_;
  std::unordered_map<std::uint64_t, std::uint32_t> edge_of_;   // by from, to
  std::unordered_map<std::uint32_t, std::uint32_t> place_of_;  // by node: its place in used_
  std::vector<std::uint32_t> used_;                            // nodes in order of first use
  std::vector<std::vector<std::uint32_t>> out_, in_;           // by place: edges in order of first use
};

}  // namespace stepscope::compat::hta
