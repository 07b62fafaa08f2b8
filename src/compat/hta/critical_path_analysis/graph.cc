#include "compat/hta/critical_path_analysis/graph.h"

#include <algorithm>

namespace stepscope::compat::hta {

std::uint32_t PathGraph::use(std::uint32_t node) {
  const auto [known, is_new] = place_of_.try_emplace(node, static_cast<std::uint32_t>(used_.size()));
  if (is_new) {
    used_.push_back(node);
    out_.emplace_back();
    in_.emplace_back();
  }
  return known->second;
}

PathEdge& PathGraph::connect(std::uint32_t from, std::uint32_t to, EdgeType type, bool zero) {
  const std::uint32_t from_place = use(from), to_place = use(to);
  const auto [known, is_new] = edge_of_.try_emplace(std::uint64_t{from} << 32 | to, edges_.size());
  if (is_new) {
    edges_.push_back({.from = from, .to = to});
    out_[from_place].push_back(known->second);
    in_[to_place].push_back(known->second);
  }
  PathEdge& edge = edges_[known->second];
  edge.type = type;
  edge.weight = zero || type == EdgeType::dependency || type == EdgeType::sync ? 0 : nodes[to].ts - nodes[from].ts;
  edge.counted = edge.weight <= -1 ? 0 : edge.weight;
  return edge;
}

// Places by generation: those without open predecessors, in order of first use, then what they set free.
std::optional<std::vector<std::uint32_t>> PathGraph::topological_order() const {
  std::vector<std::size_t> open(used_.size());
  std::vector<std::uint32_t> order;
  for (std::uint32_t place = 0; place < used_.size(); place++) {
    open[place] = in_[place].size();
    if (open[place] == 0) order.push_back(place);
  }
  for (std::size_t i = 0; i < order.size(); i++) {
    for (const std::uint32_t edge : out_[order[i]]) {
      const std::uint32_t next = place_of_.at(edges_[edge].to);
      if (--open[next] == 0) order.push_back(next);
    }
  }
  if (order.size() < used_.size()) return std::nullopt;
  return order;
}

std::optional<std::vector<std::uint32_t>> PathGraph::longest_path() const {
  constexpr std::uint32_t kNoEdge = UINT32_MAX;
  const auto order = topological_order();
  if (!order) return std::nullopt;
  std::vector<double> length(used_.size(), 0);
  std::vector<std::uint32_t> best(used_.size(), kNoEdge);
  std::uint32_t end = UINT32_MAX;
  for (const std::uint32_t place : *order) {
    for (const std::uint32_t edge : in_[place]) {
      const double here = length[place_of_.at(edges_[edge].from)] + edges_[edge].counted;
      if (best[place] != kNoEdge && here <= length[place]) continue;
      best[place] = edge;
      length[place] = here;
    }
    if (length[place] < 0) {
      best[place] = kNoEdge;
      length[place] = 0;
    }
    if (end == UINT32_MAX || length[place] > length[end]) end = place;
  }
  std::vector<std::uint32_t> path;
  while (end != UINT32_MAX && best[end] != kNoEdge) {
    path.push_back(best[end]);
    end = place_of_.at(edges_[best[end]].from);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace stepscope::compat::hta
