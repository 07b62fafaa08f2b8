// A drawn graph as a file: Graphviz's language, GraphML, JSON; SVG and PDF by Graphviz, where it is installed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/drawn_graph.h"

namespace stepscope::write {

enum class DrawingFormat : std::uint8_t { dot, graphml, json, svg, pdf };

// The format named `asked`, else the one that the ending of the file says ("x.svg", "x.json.gz"). An error lists them.
Result<DrawingFormat> drawing_format(std::string_view asked, std::string_view out);

// `seconds` is how long Graphviz may take. "-" is standard output.
Result<void> write_drawing(const graph::DrawnGraph& graph, DrawingFormat format, const std::string& out,
                           double seconds);

}  // namespace stepscope::write
