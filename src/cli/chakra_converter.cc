// `stepscope chakra_converter`: the command of MLCommons' Chakra with its own options, for scripts that exist. It is
// not in --help; `stepscope install-aliases` installs it under its name.
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/command.h"
#include "cli/open_paths.h"
#include "cli/terminal.h"
#include "write/writer.h"

namespace stepscope::cli {
namespace {

struct ConverterOptions {
  OpenPaths input;
  std::string path, output, type = "PyTorch", log;
  bool simulate = false;
};

constexpr const char* kConverterExamples = R"(Examples:
  stepscope chakra_converter PyTorch --input linked.json --output job.0.et

stepscope convert ET TIMELINE --to chakra links and converts in one go, and keeps what a linked file has no place for.)";

Result<void> convert(ConverterOptions& options) {
  if (options.type != "PyTorch") {
    return fail({ErrorKind::unsupported, "only execution traces of PyTorch are converted, not " + options.type, "",
                 std::nullopt, "Use chakra_converter PyTorch --input FILE --output FILE"});
  }
  ProgressLine progress;
  options.input.paths = {options.path};
  const auto run = options.input.open(progress);
  if (!run) return fail(run.error());
  if (run->traces.size() != 1) {
    return fail({ErrorKind::usage, "is not one trace", options.path, std::nullopt,
                 "Use stepscope convert --to chakra, which writes a file for each rank"});
  }
  if (options.simulate) print_notice("--simulate is left out: ask stepscope report of the timeline");
  write::WriteOptions write;
  write.one_file = true;
  write.tell = [](std::string_view sentence) { print_notice(sentence); };
  return write::find_writer("chakra")->write(*run, options.output, write);
}

void set_up_converter(CLI::App& app, int& code) {
  const auto options = std::make_shared<ConverterOptions>();
  app.add_option("TYPE,--input_type", options->type, "PyTorch")->type_name("");
  app.add_option("--input,--input_filename", options->path, "A linked execution trace, or a bare one")
      ->required()
      ->type_name("FILE");
  app.add_option("--output,--output_filename", options->output, "The Chakra file")->required()->type_name("FILE");
  app.add_flag("--simulate", options->simulate, "Taken and left out");
  app.add_option("--log-filename,--log_filename", options->log, "Taken and left out: there is no log")
      ->type_name("FILE");
  app.footer(kConverterExamples);
  app.callback([options, &code] { code = outcome(convert(*options)); });
}

}  // namespace

Command chakra_converter_command() {
  return {"chakra_converter", "As Chakra's command: an execution trace to .et", set_up_converter, true};
}

}  // namespace stepscope::cli
