// `stepscope convert` and what it shares with `stepscope merge`: traces in other formats.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "base/did_you_mean.h"
#include "cli/command.h"
#include "cli/open_paths.h"
#include "cli/terminal.h"
#include "write/telemetry.h"
#include "write/writer.h"

namespace stepscope::cli {
namespace {

struct ConvertOptions {
  OpenPaths input;
  std::string format, output;
  write::WriteOptions write;
};

constexpr const char* kConvertExamples = R"(Examples:
  stepscope convert trace.json.gz --to folded -o stacks.txt       for flamegraph.pl and its relatives
  stepscope convert trace.json.gz --to speedscope -o trace.speedscope.json
  stepscope convert traces/ --to perfetto -o all.pftrace          all ranks in one file, for ui.perfetto.dev
  stepscope convert traces/ --to chrome -o all.json.gz            the same for all that reads torch's traces
  stepscope convert report.sqlite --to csv -o tables/             one CSV for each table
  stepscope convert et.json trace.json.gz --to chakra -o job      job.0.et: an execution trace with its timeline's times
  stepscope convert traces/ --to chakra --profile astra -o job    job.RANK.et and job.groups.json, for ASTRA-sim

A format holds what its summary says; nothing is invented for what the input does not record.)";

Result<const write::Writer*> writer_named(std::string_view name) {
  if (const write::Writer* writer = write::find_writer(name)) return writer;
  std::vector<std::string_view> names;
  for (const write::Writer& writer : write::writers()) names.push_back(writer.name);
  return fail(unknown_name("format", name, names));
}

Result<int> convert(const ConvertOptions& options) {
  const auto writer = writer_named(options.format);
  if (!writer) return fail(writer.error());
  if ((*writer)->folder && options.output == "-") {
    return fail({ErrorKind::usage, fmt::format("{} is more than one file", options.format), "", std::nullopt,
                 "Name a folder or prefix with -o"});
  }
  ProgressLine progress;
  auto run = options.input.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output); !kept) return fail(kept.error());
  const bool is_folder = (*writer)->folder;
  if (auto shows = has_events(*run, options.format, (*writer)->counters); !shows) {
    if (run->traces.empty() || !((*writer)->graphs || (is_folder && (*writer)->counters))) return fail(shows.error());
  }
  if (!(*writer)->graphs && !is_folder) keep_timelines(*run);
  if ((*writer)->counters && !is_folder) {  // tables of a folder hold telemetry as it is
    if (const std::string told = write::add_telemetry(*run); !told.empty()) print_notice(told);
  }
  progress.show("writing " + options.output, -1);
  write::WriteOptions write = options.write;
  write.tell = [](std::string_view sentence) { print_notice(sentence); };
  if (auto written = (*writer)->write(*run, options.output, write); !written) return fail(written.error());
  return loss_outcome(*run);
}

void set_up_convert(CLI::App& app, int& code) {
  const auto options = std::make_shared<ConvertOptions>();
  app.add_option("PATH", options->input.paths, "Trace files, folders of ranks, or patterns")->required()->type_name("");
  std::string formats;
  for (const auto& writer : write::writers()) formats += fmt::format("\n{}: {}", writer.name, writer.summary);
  app.add_option("--to", options->format, "Format:" + formats)->required()->type_name("FORMAT");
  app.add_option("-o,--output", options->output, "The file, folder or prefix to write; - is standard output")
      ->required()
      ->type_name("FILE");
  app.add_option("--lane-prefix", options->write.lane_prefix, "Name lanes of ranks r0_NAME instead of 'rank 0 / NAME'")
      ->type_name("r");
  app.add_option("--profile", options->write.profile,
                 "Of chakra: full (host, device and metadata) or astra (what ASTRA-sim takes)")
      ->type_name("PROFILE");
  options->input.add_options(app);
  app.footer(kConvertExamples);
  app.callback([options, &code] {
    const Result<int> done = convert(*options);
    code = done ? *done : refused(done.error());
  });
}

}  // namespace

Command convert_command() { return {"convert", "Write traces in another format", set_up_convert}; }

}  // namespace stepscope::cli
