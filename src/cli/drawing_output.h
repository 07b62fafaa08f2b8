// What `stepscope graph` and the command of Chakra that it stands in for share: open, draw, write, say what was drawn.
#pragma once

#include <cstddef>
#include <string>

#include "cli/open_paths.h"
#include "graph/drawn_graph.h"

namespace stepscope::cli {

struct DrawingOptions {
  OpenPaths input;
  std::string output, format;  // format: empty: the ending of the output says it
  std::size_t boxes = graph::kMostBoxes;
  double seconds = 60;  // that Graphviz may take
};

int draw(const DrawingOptions& options);  // the exit code

}  // namespace stepscope::cli
