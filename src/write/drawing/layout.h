// Where the boxes of a drawing stand: calls from left to right, each box beside the middle of what it calls, in the
// order of the file from top to bottom. Of 2,000 boxes with waits among them Graphviz's own layout takes minutes; this
// is one pass, O(boxes).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/drawn_graph.h"

namespace stepscope::write::drawing {

struct Label {
  std::string name, details;  // two lines; the second may be empty
};

struct Place {  // of a box, in points; y goes up
  double left = 0, middle = 0, width = 0, height = 0;
  double right() const { return left + width; }
};

std::vector<Place> lay_out(const graph::DrawnGraph& graph, const std::vector<Label>& labels);

}  // namespace stepscope::write::drawing
