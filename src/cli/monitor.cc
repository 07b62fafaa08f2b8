// `stepscope monitor`: what processes use of the machine, sampled into a run folder, and a summary at the end.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <thread>

#include "base/version.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/interrupts.h"
#include "cli/monitor/summary.h"
#include "cli/report_output.h"
#include "cli/terminal.h"
#include "collect/processes/proc_text.h"
#include "collect/processes/process_tree.h"
#include "collect/telemetry/groups.h"
#include "collect/telemetry/sampler.h"
#include "report/format.h"
#include "run/living.h"
#include "run/manifest.h"
#include "run/run_folder.h"
#include "run/samples.h"

namespace stepscope::cli {
namespace {

namespace telemetry = collect::telemetry;

struct MonitorOptions {
  std::vector<std::string> targets;
  std::string collectors, out = "stepscope", openmetrics, interval;
  double time_s = 60;
};

Result<std::vector<collect::Process>> processes_of(const std::vector<std::string>& targets) {
  const collect::ProcessTable table = collect::ProcessTable::read();
  std::vector<collect::Process> processes;
  for (const std::string& target : targets) {
    const auto process = collect::find_process(table, target);
    if (!process) return fail(process.error());
    processes.push_back(*process);
  }
  return processes;
}

bool any_runs(const std::vector<collect::Process>& processes) {
  return std::any_of(processes.begin(), processes.end(), [](const collect::Process& one) {
    return collect::start_of("/proc", one.pid) == one.start_ticks;
  });
}

std::string job_of(const MonitorOptions& options) {
  return options.targets.empty() ? "monitor" : run::job_name({options.targets.front()});
}

run::Manifest manifest_of(const MonitorOptions& options) {
  run::Arguments command{"stepscope", "monitor"};
  command.insert(command.end(), options.targets.begin(), options.targets.end());
  return run::start_manifest(version(), job_of(options), command, "");
}

Result<std::string> make_folder(const MonitorOptions& options, const run::Manifest& manifest) {
  auto folder = run::make_run_folder(options.out, manifest.job, run::start_stamp(std::time(nullptr)));
  if (!folder) return folder;
  if (const auto written = run::write_manifest(*folder, manifest); !written) return fail(written.error());
  return folder;
}

int monitor(const MonitorOptions& options) {
  telemetry::SamplerOptions how;
  if (!options.interval.empty()) {
    const auto interval_ms = telemetry::parse_interval(options.interval);
    if (!interval_ms) return refused(interval_ms.error());
    how.interval_ms = *interval_ms;
  }
  if (!options.collectors.empty()) {
    const auto chosen = telemetry::parse_collectors(options.collectors);
    if (!chosen) return refused(chosen.error());
    how.only = *chosen;
  }
  how.openmetrics = options.openmetrics;
  how.job = job_of(options);
  const auto processes = processes_of(options.targets);
  if (!processes) return refused(processes.error());
  std::vector<pid_t> pids;
  for (const collect::Process& one : *processes) pids.push_back(one.pid);
  run::Manifest manifest = manifest_of(options);
  const auto folder = make_folder(options, manifest);
  if (!folder) return refused(folder.error());
  auto sampler = telemetry::Sampler::start(
      *folder, how, telemetry::GroupFinder(how.roots, pids, telemetry::ranks_by_processes(how.roots.proc, pids)));
  if (!sampler) return refused(sampler.error());
  for (const std::string& sentence : (*sampler)->missed()) print_notice(sentence);
  std::string absent;  // of those that nobody named
  if (how.only.empty()) {
    for (const telemetry::Absent& one : (*sampler)->absent()) absent += (absent.empty() ? "" : ", ") + one.collector;
  }
  if (!absent.empty()) print_notice("not here, and stepscope doctor says why: " + absent);
  print_notice(fmt::format("{} · sampling {} for {:.6g} s into {} (Ctrl-C ends it)", version(),
                           pids.empty() ? "this machine" : report::format_plural(pids.size(), "process"),
                           options.time_s, *folder));
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const auto end = began + std::chrono::duration<double>(options.time_s);
  const Interrupts interrupts;
  while (Clock::now() < end && !interrupts.came() && (pids.empty() || any_runs(*processes))) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const double passed_s = std::chrono::duration<double>(Clock::now() - began).count();
  if (!processes->empty() && !any_runs(*processes)) {
    print_notice(fmt::format("{} ended after {:.3g} s", report::format_plural(pids.size(), "process"), passed_s));
  }
  const double cost = static_cast<double>((*sampler)->cpu_ns()) / 1e9 / passed_s;
  for (const std::string& problem : (*sampler)->end()) print_notice(problem);
  sampler->reset();
  manifest.ended_unix_ns = run::unix_now_ns();
  manifest.exit_code = kOk;
  if (const auto written = run::write_manifest(*folder, manifest); !written) print_notice(to_text(written.error()));
  const auto files = run::sample_files(*folder);
  const auto samples = files.empty() ? fail({ErrorKind::not_found, "nothing was sampled", *folder, {}, ""})
                                     : run::read_samples(files.front());
  if (!samples) return refused(samples.error());
  if (samples->series.empty()) {
    print_notice(pids.empty() ? "nothing was sampled: without a process there is only what is of the whole machine"
                              : "nothing was sampled: stepscope doctor says what there is here");
  }
  if (const auto written = write_stdout(sampled_summary(*samples, *folder, text_style("-"))); !written) {
    print_error(written.error());
    return kRefused;
  }
  print_notice(
      fmt::format("sampling took {:.2g} % of a core; next: stepscope report --only system {}", 100 * cost, *folder));
  return kOk;
}

constexpr const char* kMonitorExamples = R"(Examples:
  stepscope monitor --time 10          this machine alone
  stepscope monitor 4711               the job that process 4711 belongs to
  stepscope monitor train.py --time 5m by the name of its script

Each rank is sampled with its data loading workers and other children. It needs
no rights but those to look at the processes, and ends with them. What there is
to sample here: stepscope doctor. Next: stepscope report --only system FOLDER.)";

void set_up_monitor(CLI::App& app, int& code) {
  auto options = std::make_shared<MonitorOptions>();
  if (const char* out = std::getenv("STEPSCOPE_OUT"); out != nullptr && *out != '\0') options->out = out;
  app.add_option("target", options->targets, "PIDs or names of processes; none: this machine alone");
  app.add_option("--time", options->time_s, "How long to sample: 5 or 5s, 500ms, 2m, 1h (default 60)")
      ->transform(duration(0.1, 1e7));
  app.add_option("--interval", options->interval,
                 "Time between samples, as 100ms or 1s (default: of each collector, 100 ms or more)");
  app.add_option("--collectors", options->collectors,
                 "Of " + telemetry::collector_names() + ", each with its own interval if need be: cpu:10ms,io:1s");
  app.add_option("--out", options->out, "Folder of all runs (default ./stepscope)");
  app.add_option("--openmetrics", options->openmetrics,
                 "Also write what is sampled there, every 10 s, for node_exporter's textfile collector");
  app.footer(kMonitorExamples);
  app.callback([options, &code] { code = monitor(*options); });
}

}  // namespace

Command monitor_command() { return {"monitor", "Sample what processes use of the machine", set_up_monitor}; }

}  // namespace stepscope::cli
