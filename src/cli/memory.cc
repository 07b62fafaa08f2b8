// `stepscope memory`: what fills the memory of the devices: snapshots first, else what traces say of it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/duration.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/open_paths.h"
#include "cli/report_output.h"
#include "cli/terminal.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

constexpr std::size_t kMemoryRows = 8;  // of the longest table

struct MemoryOptions {
  OpenPaths input;
  std::string diff;
  session::MemoryView view;
  std::optional<std::int64_t> at, oom;
  std::optional<double> seconds;
  bool peak = false, end = false;
  ReportOutput output;
};

constexpr const char* kMemoryExamples =
    R"(Examples:
  stepscope memory snapshot.pickle                 the peak, where memory ran out, what grows
  stepscope memory oom_rank-0_snapshot.pickle --oom 1 --by stack --stacks
  stepscope memory snapshot.pickle --at 12000      what lives after event 12000
  stepscope memory snapshot.pickle --from 'step 2' --to 'step 9'
  stepscope memory before.pickle --diff after.pickle
  stepscope memory stepscope/train/TIME            a run folder, with all ranks
  stepscope memory trace.json.gz                   a trace with memory events (profile_memory=True)
  stepscope memory snapshot.pickle --html memory.html

Record snapshots: stepscope run --memory-history -- python train.py. Exit codes: as of stepscope report.)";

// The answers that are about memory, as far as this run can tell anything.
std::vector<std::string> names_for(const Run& run) {
  std::vector<std::string> names;
  const auto has_events = [](const Trace& trace) { return trace.memory.size() > 0; };
  if (!run.snapshots.empty()) names.emplace_back("snapshot");
  if (run.snapshots.empty() || std::any_of(run.traces.begin(), run.traces.end(), has_events))
    names.emplace_back("memory");
  const auto all = session::answer_names();
  if (!run.traces.empty() && std::find(all.begin(), all.end(), "memory_state") != all.end())
    names.emplace_back("memory_state");
  return names;
}

// At most one of the options that name a moment; true: one does.
bool take_moment(MemoryOptions& options) {
  using session::MomentKind;
  if (options.at) options.view.kind = MomentKind::event, options.view.number = *options.at;
  if (options.oom) options.view.kind = MomentKind::oom, options.view.number = *options.oom;
  if (options.seconds) options.view.kind = MomentKind::time, options.view.seconds = *options.seconds;
  if (options.end) options.view.kind = MomentKind::end;
  return options.at || options.oom || options.seconds || options.end || options.peak;
}

bool asks_for_view(const MemoryOptions& options, bool has_moment) {
  const session::MemoryView& view = options.view;
  return has_moment || !view.by.empty() || view.rank || view.device || !view.from.empty() || !view.to.empty();
}

Result<Report> make_memory_report(MemoryOptions& options) {
  ProgressLine progress;
  const bool has_moment = take_moment(options);
  auto run = options.input.open(progress);
  if (!run) return fail(run.error());
  if (auto kept = keep_inputs(*run, options.output.target()); !kept) return fail(kept.error());
  if (!options.diff.empty()) {
    OpenPaths other = options.input;
    other.paths = {options.diff};
    const auto second = other.open(progress);
    if (!second) return fail(second.error());
    if (auto kept = keep_inputs(*second, options.output.target()); !kept) return fail(kept.error());
    return session::memory_report(*run, *second, options.view);
  }
  progress.show("working out the answers", -1);
  if (asks_for_view(options, has_moment)) return session::memory_report(*run, options.view);
  return session::answer(*run, names_for(*run));
}

int run_memory_command(MemoryOptions& options) {
  const auto report = make_memory_report(options);
  if (!report) return refused(report.error());
  if (const auto written = options.output.write(*report, true, kMemoryRows); !written) return refused(written.error());
  const bool lost = std::any_of(report->issues.begin(), report->issues.end(),
                                [](const Issue& issue) { return issue.severity == Severity::lost; });
  if (lost) print_notice("data was lost in the input, so the report is partial");
  return lost ? kPartial : kOk;
}

void add_moments(CLI::App& app, MemoryOptions& options) {
  auto* peak = app.add_flag("--peak", options.peak, "What lives at the peak, which is the moment without any of these");
  auto* at = app.add_option("--at", options.at, "What lives after the event of this number, counted from 0")
                 ->type_name("EVENT")
                 ->check(whole_number(0, 0xfffffffe));
  auto* time = app.add_option("--time", options.seconds,
                              "What lives this long after the first event: 1.5s, 200ms; or at a Unix time in seconds")
                   ->type_name("TIME")
                   ->transform(duration(0, 1e11));
  auto* oom = app.add_option("--oom", options.oom, "What lived when memory ran out for the N-th time, from 1 on")
                  ->type_name("N")
                  ->check(whole_number(1, 0xfffffffe));
  auto* end = app.add_flag("--end", options.end, "What lives at the end");
  for (auto* option : {at, time, oom, end}) option->excludes(peak);
  for (auto* option : {time, oom, end}) option->excludes(at);
  for (auto* option : {oom, end}) option->excludes(time);
  end->excludes(oom);
}

void set_up_memory(CLI::App& app, int& code) {
  const auto options = std::make_shared<MemoryOptions>();
  session::MemoryView& view = options->view;
  app.add_option("PATH", options->input.paths, "Memory snapshots, memory timelines, run folders or traces")
      ->required()
      ->type_name("");
  add_moments(app, *options);
  const auto names = session::memory_groups();
  app.add_option("--by", view.by, fmt::format("Group what lives then by one of: {}", fmt::join(names, ", ")))
      ->type_name("WHAT")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
  app.add_option("--diff", options->diff, "Compare with other snapshots (B), at the same kind of moment")
      ->type_name("PATH");
  app.add_option("--from", view.from, "What grew since this event or step (default: the beginning)")->type_name("WHEN");
  app.add_option("--to", view.to, "Until this event or step (default: the end)")->type_name("WHEN");
  app.add_option("--rank", view.rank, "Only this rank")->type_name("N");
  app.add_option("--device", view.device, "Only this device of each process")->type_name("N");
  app.add_option("--limit", view.limit, "Keep the first N rows of each table, also in --json and --csv")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  app.add_flag("--stacks", options->output.stacks, "Show whole stacks below the tables; --json has them anyway");
  options->output.add_options(app, std::to_string(kMemoryRows));
  options->input.add_options(app);
  app.footer(kMemoryExamples);
  app.callback([options, &code] { code = run_memory_command(*options); });
}

}  // namespace

Command memory_command() {
  return {"memory", "Say what fills the memory of the devices, and why it ran out", set_up_memory};
}

}  // namespace stepscope::cli
