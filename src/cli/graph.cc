// `stepscope graph`: an execution trace or Chakra file as a picture.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/command.h"
#include "cli/drawing_output.h"
#include "cli/help.h"

namespace stepscope::cli {
namespace {

constexpr const char* kGraphExamples = R"(Examples:
  stepscope graph et.json.gz -o graph.svg         needs Graphviz, as .pdf does
  stepscope graph trace.0.et -o graph.graphml     needs nothing, as .dot and .json
  stepscope graph et.json -o graph.dot --boxes 300

Every node is a box up to --boxes; of more nodes, those that were called the same way share one.
Record execution traces: stepscope run --with execution-trace -- python train.py.)";

void set_up_graph(CLI::App& app, int& code) {
  const auto options = std::make_shared<DrawingOptions>();
  app.add_option("PATH", options->input.paths, "An execution trace or Chakra file, those of several ranks, or a folder")
      ->required()
      ->type_name("");
  app.add_option("-o,--output", options->output, "The file to write; its ending says the format; - is standard output")
      ->required()
      ->type_name("FILE");
  app.add_option("--to", options->format, "The format, whatever the file is called: dot, graphml, json, svg, pdf")
      ->type_name("FORMAT");
  app.add_option("--boxes", options->boxes, "Boxes at most (default: 2000)")
      ->type_name("N")
      ->check(whole_number(1, 100'000));
  app.add_option("--timeout", options->seconds, "How long Graphviz may take: 500ms, 2m (default: 60, seconds)")
      ->type_name("TIME")
      ->transform(duration(0.001, 1e6));
  options->input.add_options(app);
  app.footer(kGraphExamples);
  app.callback([options, &code] { code = draw(*options); });
}

}  // namespace

Command graph_command() { return {"graph", "Draw an execution trace or Chakra file", set_up_graph}; }

}  // namespace stepscope::cli
