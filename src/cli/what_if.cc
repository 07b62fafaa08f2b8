// `stepscope what-if`: what changes to a program would be worth, predicted from its recording.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/open_paths.h"
#include "cli/report_output.h"
#include "cli/terminal.h"
#include "session/changes.h"
#include "session/network_file.h"
#include "session/what_if.h"
#include "write/writer.h"

namespace stepscope::cli {
namespace {

constexpr std::size_t kLongestTable = 12;

struct WhatIfOptions {
  OpenPaths open;
  std::vector<std::string> scale, remove, move, fuse;
  std::optional<double> data_loader, bandwidth;
  std::optional<long> ranks, level_rank;
  bool overlap = false, no_waits = false;
  std::string trace, topology;
  ReportOutput output;
};

constexpr const char* kWhatIfExamples = R"(Examples:
  stepscope what-if trace.json.gz                                what bounds it, and what to try
  stepscope what-if run/ --scale 'kernel:gemm=0.5'               matrix products twice as fast
  stepscope what-if run/ --remove op:aten::sort --dataloader 0   both together
  stepscope what-if run/ --move 'op:aten::topk=120us'            every call of it takes 120 us
  stepscope what-if run/ --ranks 64 --bandwidth 2                64 ranks, links twice as fast
  stepscope what-if run/ --ranks 64 --topology network.yml       64 ranks on that network
  stepscope what-if run/ --no-waits --trace predicted.json.gz    the predicted run as a trace, for any viewer

What a change is about: kernel:TEXT (name or family), op:NAME (with its kernels), host:NAME
(without them), module:PATH (with its backward pass), phase:NAME, rank:N. Where a name is exactly
TEXT, only that name is meant. The range is that of waits that nothing in the recording explains:
they stay, or are gone. docs/what-if.md says what is in a prediction and what is not.)";

Error usage(std::string message, std::string hint) {
  return {ErrorKind::usage, std::move(message), "", std::nullopt, std::move(hint)};
}

Result<std::vector<Change>> changes_of(const WhatIfOptions& options) {
  std::vector<Change> changes;
  const std::pair<const char*, const std::vector<std::string>*> repeated[] = {
      {"scale", &options.scale}, {"remove", &options.remove}, {"move", &options.move}, {"fuse", &options.fuse}};
  for (const auto& [name, values] : repeated) {
    for (const std::string& value : *values) {
      Result<Change> change = session::read_change(name, value);
      if (!change) return fail(change.error());
      changes.push_back(*std::move(change));
    }
  }
  if (options.data_loader) changes.push_back({.kind = ChangeKind::data_loader, .value = *options.data_loader});
  if (options.no_waits) changes.push_back({.kind = ChangeKind::no_waits});
  if (options.level_rank) changes.push_back({.kind = ChangeKind::level_rank, .rank = options.level_rank});
  if (options.bandwidth) changes.push_back({.kind = ChangeKind::bandwidth, .value = *options.bandwidth});
  if (!options.topology.empty() && !options.ranks) {
    return fail(usage("--topology says on what network more ranks would run", "Add --ranks 64"));
  }
  if (options.ranks) {
    changes.push_back({.kind = ChangeKind::ranks, .value = static_cast<double>(*options.ranks)});
    if (!options.topology.empty()) {
      Result<Network> network = session::read_network(options.topology);
      if (!network) return fail(network.error());
      changes.back().network = *std::move(network);
    }
  }
  if (options.overlap) changes.push_back({.kind = ChangeKind::overlap});
  session::put_in_order(changes);
  return changes;
}

// What the name of a predicted trace says of its format.
Result<std::string_view> format_of(const std::string& path) {
  if (path.ends_with(".pftrace")) return "perfetto";
  if (path.ends_with(".json") || path.ends_with(".json.gz")) return "chrome";
  return fail(Error{ErrorKind::usage, "ends in none of .json, .json.gz and .pftrace", path, std::nullopt,
                    "Name the trace by its format"});
}

Result<void> write_trace(Run& run, const std::vector<Change>& changes, const std::string& path) {
  if (auto kept = keep_inputs(run, path); !kept) return kept;
  if (const auto moved = session::become_predicted(run, changes); !moved) return moved;
  keep_timelines(run);
  const std::string_view format = *format_of(path);
  const auto writers = write::writers();
  const auto writer = std::find_if(writers.begin(), writers.end(), [&](const auto& w) { return w.name == format; });
  return writer->write(run, path, {});
}

Result<int> run_what_if(const WhatIfOptions& options) {
  const Result<std::vector<Change>> changes = changes_of(options);
  if (!changes) return fail(changes.error());
  if (!options.trace.empty()) {
    if (const auto format = format_of(options.trace); !format) return fail(format.error());
  }
  ProgressLine progress;
  Result<Run> run = options.open.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output.target()); !kept) return fail(kept.error());
  const int code = loss_outcome(*run);
  progress.show("playing", -1);
  Result<Report> report = session::what_if(*run, *changes);
  if (!report) return fail(report.error());
  if (const auto written = options.output.write(*std::move(report), true, kLongestTable); !written) {
    return fail(written.error());
  }
  if (options.trace.empty()) return code;
  progress.show("writing " + options.trace, -1);
  if (const auto written = write_trace(*run, *changes, options.trace); !written) return fail(written.error());
  return code;
}

CLI::Option* repeated(CLI::App& app, const char* name, std::vector<std::string>& values, const char* meaning,
                      const char* type) {
  return app.add_option(name, values, meaning)->type_name(type)->expected(1)->take_all();
}

void set_up_what_if(CLI::App& app, int& code) {
  const auto options = std::make_shared<WhatIfOptions>();
  app.add_option("PATH", options->open.paths, "Trace files, folders of ranks, or patterns")->required()->type_name("");
  repeated(app, "--scale", options->scale, "It takes so many times as long; may be repeated", "TARGET=FACTOR");
  repeated(app, "--remove", options->remove, "It is gone; may be repeated", "TARGET");
  repeated(app, "--move", options->move, "Every call of it takes so long; may be repeated", "TARGET=TIME");
  repeated(app, "--fuse", options->fuse, "Neighbors on a stream become one kernel; may be repeated", "TARGET");
  app.add_option("--dataloader", options->data_loader, "Waiting for the data loader takes so many times as long")
      ->type_name("FACTOR");
  app.add_flag("--no-waits", options->no_waits, "The host never waits for the device");
  app.add_flag("--overlap-comm", options->overlap, "Only the end of the step waits for communication");
  app.add_option("--bandwidth", options->bandwidth, "Links are so many times as fast")->type_name("FACTOR");
  app.add_option("--ranks", options->ranks, "So many data-parallel ranks")->type_name("N");
  app.add_option("--topology", options->topology,
                 "Network of these ranks: ASTRA-sim's network.yml (topology, npus_count, bandwidth, latency)")
      ->type_name("FILE");
  app.add_option("--level-rank", options->level_rank, "The others do not wait for this rank")->type_name("RANK");
  app.add_option("--trace", options->trace, "Also write the predicted run as a trace: .json, .json.gz or .pftrace")
      ->type_name("FILE");
  options->output.add_options(app, std::to_string(kLongestTable));
  options->open.add_options(app);
  app.footer(kWhatIfExamples);
  app.callback([options, &code] {
    const Result<int> done = run_what_if(*options);
    code = done ? *done : refused(done.error());
  });
}

}  // namespace

Command what_if_command() { return {"what-if", "Predict what changes to the program would be worth", set_up_what_if}; }

}  // namespace stepscope::cli
