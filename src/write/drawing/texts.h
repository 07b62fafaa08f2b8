// The texts of a drawing: Graphviz's language, GraphML, JSON. Valid whatever the names of the nodes hold: quotes,
// markup, control characters and broken UTF-8 are escaped or replaced, and what is longer than kLongestName is cut in
// the middle.
#pragma once

#include <cstddef>
#include <string>

#include "graph/drawn_graph.h"

namespace stepscope::write::drawing {

inline constexpr std::size_t kLongestName = 1000;  // columns; in a picture 60

// One line of clean text. Of several nodes the name without what changes from call to call.
std::string shown_name(const graph::DrawnBox& box, std::size_t width);

std::string dot_text(const graph::DrawnGraph& graph);
std::string graphml_text(const graph::DrawnGraph& graph);
std::string json_text(const graph::DrawnGraph& graph);

}  // namespace stepscope::write::drawing
