// What is drawn of execution traces and Chakra files: boxes, and arrows between them.
//
// Where all nodes fit, each has its box. Of more nodes, those that were reached the same way (the names of all callers,
// without what changes from call to call) share one. Of more ways than boxes, those with the fewest nodes are drawn as
// part of their caller; roots among them share the last box. Input: any number of graphs with up to 10^6 nodes; callers
// and dependencies that are missing are left out, as the issues of the trace say, and circles of callers are cut. O(n
// log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stepscope::graph {

inline constexpr std::uint32_t kNoBox = 0xffffffff;

struct DrawnBox {
  std::uint32_t parent = kNoBox;  // the box of the caller, which stands before this one
  std::int64_t rank = 0;
  std::string_view name;  // of the first of the nodes, in the pool of its trace; empty: none was recorded
  NodeKind kind = NodeKind::host;
  std::int64_t id = kAbsent;  // in the file, of the first of the nodes
  bool others = false;        // of roots that have no box of their own
  std::uint64_t nodes = 0;
  std::uint64_t inside = 0;  // nodes below these that have no box of their own
  std::uint64_t timed = 0;   // of `nodes`, those whose duration the file says
  std::int64_t dur_ns = 0;   // of these, summed, with what they call
};

struct DrawnArrow {                // beside the calls, which are the parents of the boxes
  std::uint32_t from = 0, to = 0;  // `to` waits for `from`
  std::uint64_t waits = 0;
};

struct DrawnGraph {
  std::vector<DrawnBox> boxes;
  std::vector<DrawnArrow> arrows;
  std::uint64_t nodes = 0;
  std::size_t graphs = 0;          // traces that have nodes
  std::uint64_t waits_inside = 0;  // between nodes of one box: no arrow
  std::uint64_t waits_omitted =
      0;  // of arrows that are left out: the thinnest, where there are more than 4 for each box
  bool collapsed() const { return nodes > boxes.size(); }
};

inline constexpr std::size_t kMostBoxes =
    2000;  // a picture of more is slow to lay out, and nobody finds anything in it

// `most_boxes` is at least 1. The boxes refer to the names of `run`.
DrawnGraph draw_graph(const Run& run, std::size_t most_boxes);

}  // namespace stepscope::graph
