// `stepscope attach`: records some steps of a job that runs already.
//
// A job that was started with `stepscope run` is asked through a file in its run folder. Any other gets the hooks
// injected into each of its ranks on this host, is asked in the same way, and is left without them again.
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
#include "cli/run_paths.h"
#include "cli/terminal.h"
#include "collect/attach.h"
#include "collect/collect.h"
#include "collect/requests.h"
#include "report/format.h"
#include "run/manifest.h"
#include "run/progress.h"
#include "run/run_folder.h"

namespace stepscope::cli {
namespace {

struct AttachOptions {
  std::string target, job, out = "stepscope", ranks = "all", with = "shapes,memory,modules";
  std::int64_t steps = 3;
  double timeout_s = 300;
};

// What is waited for.
struct Wanted {
  std::string folder, request;
  std::size_t ranks = 0;  // that are to record
  std::int64_t steps = 0;
};

struct Recorded {
  std::optional<std::int64_t> first;
  std::size_t ranks = 0;
  std::vector<std::string> traces, problems;
};

Recorded recorded_so_far(const Wanted& wanted) {
  Recorded out;
  out.first = collect::chosen_start(wanted.folder, wanted.request);
  for (const run::ProcessNote& note : run::read_process_notes(wanted.folder, out.problems)) {
    if (!note.first_problem.empty()) out.problems.push_back(note.first_problem);
    if (!out.first || !note.last_step || *note.last_step < *out.first + wanted.steps - 1) continue;
    out.ranks++;
    out.traces.insert(out.traces.end(), note.traces.begin(), note.traces.end());
  }
  return out;
}

std::size_t running_ranks(const std::string& folder) {
  std::size_t count = 0;
  for (const std::string& path : run::ring_files(folder)) {
    const auto ring = run::read_ring(path);
    if (ring && run::progress_of(*ring, 1).running) count++;
  }
  return count;
}

int wait_for(const Wanted& wanted, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  Recorded now = recorded_so_far(wanted);
  bool seen = false, ended = false;  // ranks that run
  while (now.ranks < wanted.ranks && Clock::now() < end && !ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const bool running = running_ranks(wanted.folder) > 0;
    ended = seen && !running;
    seen = seen || running;
    now = recorded_so_far(wanted);
  }
  if (now.ranks == 0) {
    std::string why = ended  ? "the job ended before"
                      : seen ? fmt::format("the steps did not come in {:.0f} s", timeout_s)
                             : fmt::format("no step ended in {:.0f} s", timeout_s);
    if (!now.problems.empty()) why += "; a problem: " + now.problems.front();
    return refused({ErrorKind::not_found, "nothing was recorded: " + why, wanted.folder, std::nullopt,
                    ended ? "Ask while it runs" : "Look how the job stands: stepscope live " + wanted.folder});
  }
  for (const std::string& missing : run::wait_for_traces(wanted.folder, now.traces, 20)) {
    now.problems.push_back(missing + " was not written to its end");
  }
  std::string text = fmt::format("recorded steps {}-{} of {}", *now.first, *now.first + wanted.steps - 1,
                                 report::format_plural(now.ranks, "rank"));
  if (now.ranks < wanted.ranks) text += fmt::format("; {} did not come that far", wanted.ranks - now.ranks);
  if (!now.problems.empty()) text += "; a problem: " + now.problems.front();
  print_notice(text + ". Next: stepscope report " + wanted.folder);
  return now.ranks < wanted.ranks ? kPartial : kOk;
}

int ask_job(const std::string& folder, const AttachOptions& options) {
  const std::size_t running = running_ranks(folder);
  if (running == 0) {
    return refused({ErrorKind::not_found, "no rank of this run is known to be running", folder, std::nullopt,
                    "Give the folder of a job that runs, or the PID of one"});
  }
  const auto request = collect::write_request(folder, {options.steps, options.ranks});
  if (!request) return refused(request.error());
  print_notice(fmt::format("asked {} for {} steps", report::format_plural(running, "rank"), options.steps));
  // With a choice of ranks nobody but the hooks knows how many of them that is.
  return wait_for({folder, *request, options.ranks == "all" ? running : 1, options.steps}, options.timeout_s);
}

// The hooks come into the processes; the folder of the recording, or why there is none.
Result<std::string> enter(const collect::Process& process, const std::vector<collect::RankProcess>& ranks,
                          const AttachOptions& options, std::size_t& entered) {
  const auto hooks = collect::find_hooks();
  if (!hooks) return fail(hooks.error());
  const std::string job = run::job_name(process.command);
  const auto folder = run::make_run_folder(options.out, job, run::start_stamp(std::time(nullptr)));
  if (!folder) return fail(folder.error());
  const std::string capture = "steps=none ranks=all with=" + options.with;
  run::Manifest manifest = run::start_manifest(version(), job, process.command, capture);
  if (const auto written = run::write_manifest(*folder, manifest); !written) return fail(written.error());
  const collect::Attachment done = collect::attach(ranks, collect::attach_source(*hooks, *folder, capture));
  for (const collect::NotAttached& one : done.failed) {
    print_notice(fmt::format("process {}: {}", one.rank.process.pid, to_text(one.why)));
  }
  if (done.ranks.empty()) return fail(done.failed.front().why);
  entered = done.ranks.size();
  std::int64_t longest = 0;
  for (const collect::Attached& one : done.ranks) longest = std::max(longest, one.stopped_ns);
  print_notice(fmt::format("attached to {}, stopped for {} at most; recording {} steps into {}",
                           report::format_plural(entered, "process"), report::format_time(static_cast<double>(longest)),
                           options.steps, *folder));
  return *folder;
}

int attach_to(const AttachOptions& options) {
  const collect::ProcessTable table = collect::ProcessTable::read();
  const auto process = collect::find_process(table, options.target);
  if (!process) return refused(process.error());
  const auto ranks = collect::find_ranks(table, process->pid);
  if (!ranks) return refused(ranks.error());
  const auto environment = collect::environment_of("/proc", ranks->front().process.pid);
  if (environment && environment->contains("STEPSCOPE_RUN")) return ask_job(environment->at("STEPSCOPE_RUN"), options);
  std::size_t entered = 0;
  const auto folder = enter(*process, *ranks, options, entered);
  if (!folder) return refused(folder.error());
  const auto request = collect::write_request(*folder, {options.steps, options.ranks, true, true});
  if (!request) return refused(request.error());
  return wait_for({*folder, *request, options.ranks == "all" ? entered : 1, options.steps}, options.timeout_s);
}

int attach(const AttachOptions& options) {
  if (options.target.empty() == options.job.empty()) {
    return refused({ErrorKind::usage,
                    "a running job is to be named",
                    {},
                    {},
                    "Give its PID or name, such as stepscope attach train.py, or its run folder with --job"});
  }
  if (const auto ranks = collect::parse_ranks(options.ranks); !ranks) return refused(ranks.error());
  if (const auto parts = collect::parse_with(options.with); !parts) return refused(parts.error());
  if (options.job.empty()) return attach_to(options);
  const auto folder = find_run(options.job, options.out);
  return folder ? ask_job(*folder, options) : refused(folder.error());
}

constexpr const char* kExamples = R"(Examples:
  stepscope attach 4711                the job that process 4711 belongs to
  stepscope attach train.py --steps 5  by the name of its script
  stepscope attach --job stepscope     the newest run that was started with
                                       stepscope run; needs no rights

All ranks of the job on this host record the same steps. Afterwards the job is
as it was before. Attaching to a PID needs the right to trace the process:
stepscope doctor says whether this machine grants it.
Exit codes: 0 recorded, 1 not, 4 not by all ranks.)";

void set_up(CLI::App& app, int& code) {
  auto options = std::make_shared<AttachOptions>();
  if (const char* out = std::getenv("STEPSCOPE_OUT"); out != nullptr && *out != '\0') options->out = out;
  app.add_option("target", options->target, "PID or name of a process of the job");
  app.add_option("--job", options->job, "Run folder of a job that runs under stepscope run");
  app.add_option("--steps", options->steps, "How many steps to record (default 3)")->check(CLI::Range(1, 10'000));
  app.add_option("--ranks", options->ranks, "Ranks to record (default all)");
  app.add_option("--with", options->with, "What to record (default shapes,memory,modules)");
  app.add_option("--out", options->out, "Folder of all runs (default ./stepscope)");
  app.add_option("--timeout", options->timeout_s, "Seconds to wait for the steps (default 300)")
      ->check(CLI::Range(1.0, 1e6));
  app.footer(kExamples);
  app.callback([options, &code] { code = attach(*options); });
}

}  // namespace

Command attach_command() { return {"attach", "Record some steps of a job that runs already", set_up}; }

}  // namespace stepscope::cli
