// `stepscope merge`: the ranks of a run in one file on one clock, for viewers that open one file.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/open_paths.h"
#include "cli/terminal.h"
#include "write/telemetry.h"
#include "write/writer.h"

namespace stepscope::cli {
namespace {

struct MergeOptions {
  OpenPaths input;
  std::string output;
  write::WriteOptions write;
};

constexpr const char* kMergeExamples = R"(Examples:
  stepscope merge rank0.json rank1.json -o merged.json.gz
  stepscope merge traces/ -o merged.json --lane-prefix r      lanes r0_…, r1_… instead of rank 0 / …

The file is Chrome trace JSON; stepscope opens it as the run of ranks that it was.)";

Result<void> merge(const MergeOptions& options) {
  ProgressLine progress;
  auto run = options.input.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output); !kept) return kept;
  if (auto shows = has_events(*run, "Chrome trace JSON", true); !shows) return shows;
  keep_timelines(*run);
  progress.show("writing " + options.output, -1);
  if (const std::string told = write::add_telemetry(*run); !told.empty()) print_notice(told);
  const auto writers = write::writers();
  const auto chrome = std::find_if(writers.begin(), writers.end(), [](const auto& w) { return w.name == "chrome"; });
  return chrome->write(*run, options.output, options.write);
}

void set_up_merge(CLI::App& app, int& code) {
  const auto options = std::make_shared<MergeOptions>();
  app.add_option("PATH", options->input.paths, "Trace files of ranks, folders, or patterns")->required()->type_name("");
  app.add_option("-o,--output", options->output, "The file to write; gzip where it ends in .gz; - is standard output")
      ->required()
      ->type_name("FILE");
  app.add_option("--lane-prefix", options->write.lane_prefix, "Name lanes r0_NAME instead of 'rank 0 / NAME'")
      ->type_name("r");
  options->input.add_options(app);
  app.footer(kMergeExamples);
  app.callback([options, &code] { code = outcome(merge(*options)); });
}

}  // namespace

Command merge_command() { return {"merge", "Write all ranks into one file on one clock", set_up_merge}; }

}  // namespace stepscope::cli
