// `stepscope chakra_jsonizer`: the command of MLCommons' Chakra with its own options, for scripts that exist. It is not
// in
// --help; `stepscope install-aliases` installs it under its name. Unlike there, the output is one JSON document.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/command.h"
#include "write/chakra_json.h"

namespace stepscope::cli {
namespace {

struct JsonizerOptions {
  std::string input, output;
};

void set_up_jsonizer(CLI::App& app, int& code) {
  const auto options = std::make_shared<JsonizerOptions>();
  app.add_option("--input_filename,--input", options->input, "A Chakra file (.et)")->required()->type_name("FILE");
  app.add_option("--output_filename,--output", options->output, "One JSON document; - is standard output")
      ->required()
      ->type_name("FILE");
  app.footer("Examples:\n  stepscope chakra_jsonizer --input_filename job.0.et --output_filename job.0.json");
  app.callback([options, &code] { code = outcome(write::write_chakra_json(options->input, options->output)); });
}

}  // namespace

Command chakra_jsonizer_command() {
  return {"chakra_jsonizer", "As Chakra's command: an .et file as JSON", set_up_jsonizer, true};
}

}  // namespace stepscope::cli
