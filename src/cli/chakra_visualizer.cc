// `stepscope chakra_visualizer`: `stepscope graph` by the flags of Chakra's command of that name.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/command.h"
#include "cli/drawing_output.h"

namespace stepscope::cli {
namespace {

constexpr const char* kVisualizerExamples = R"(Examples:
  stepscope chakra_visualizer --input_filename trace.0.et --output_filename graph.pdf

The same as stepscope graph trace.0.et -o graph.pdf, which has more options.)";

void set_up_chakra_visualizer(CLI::App& app, int& code) {
  const auto options = std::make_shared<DrawingOptions>();
  app.add_option("--input_filename", options->input.paths, "A Chakra file or execution trace")
      ->required()
      ->expected(1)
      ->type_name("FILE");
  app.add_option("--output_filename", options->output, "The file to write: .dot, .graphml, .json, .svg or .pdf")
      ->required()
      ->type_name("FILE");
  app.footer(kVisualizerExamples);
  app.callback([options, &code] { code = draw(*options); });
}

}  // namespace

Command chakra_visualizer_command() {
  return {"chakra_visualizer", "Draw a graph by the flags of Chakra's command of this name", set_up_chakra_visualizer,
          true};
}

}  // namespace stepscope::cli
