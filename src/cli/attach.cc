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
#include <filesystem>
#include <memory>
#include <thread>

#include "base/version.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/interrupts.h"
#include "cli/run_paths.h"
#include "cli/terminal.h"
#include "collect/attach.h"
#include "collect/collect.h"
#include "collect/kineto_daemon/record.h"
#include "collect/requests.h"
#include "collect/settings.h"
#include "collect/telemetry/beside.h"
#include "report/format.h"
#include "run/living.h"
#include "run/manifest.h"
#include "run/progress.h"
#include "run/run_folder.h"

namespace stepscope::cli {
namespace {

namespace telemetry = collect::telemetry;

struct AttachOptions {
  std::string target, job, method = "auto";
  collect::Typed typed;          // of the settings that stepscope run has too
  std::string out, ranks, with;  // as these say
  collect::Parts parts;
  bool telemetry = true;
  std::vector<telemetry::Choice> sampled;
  std::int64_t steps = collect::kRequestedSteps;
  double time_s = 0, warmup_s = 0;  // time_s > 0: so long instead of steps
  double timeout_s = 300;
};

// What is waited for.
struct Wanted {
  std::string folder, request;
  std::size_t ranks = 0;  // that are to record
  std::int64_t steps = 0;
  double time_s = 0;
  bool detach = false;  // the hooks leave afterwards
};

struct Recorded {
  std::size_t ranks = 0, cut = 0, left = 0;  // cut: of the ranks, not to the end; left: that the hooks are out of
  std::size_t refused = 0, not_asked = 0;
  std::int64_t steps = 0;  // whole ones, of the rank with most
  std::string why_refused;
  double cost_s = 0;  // of the job's time, in the process where it took most
  std::vector<std::string> traces, problems;
};

Recorded recorded_so_far(const Wanted& wanted) {
  Recorded out;
  for (const run::ProcessNote& note : run::read_process_notes(wanted.folder, out.problems)) {
    if (!note.first_problem.empty()) out.problems.push_back(note.first_problem);
    const auto answer = note.requests.find(wanted.request);
    constexpr std::string_view kNot = "not recorded: ";
    const std::string said = answer == note.requests.end() ? "" : answer->second;
    if (said.starts_with("not asked: ")) {
      out.not_asked++;
      continue;
    }
    const std::string why_not = said.starts_with(kNot) ? said.substr(kNot.size()) : note.refused;
    if (!why_not.empty()) {
      out.refused++;
      out.why_refused = why_not;
    }
    if (said.empty() || !why_not.empty()) continue;
    out.ranks++;
    out.steps = std::max(out.steps, note.whole_steps);
    out.cost_s = std::max(out.cost_s, note.cost_s);
    out.cut += said.starts_with("cut short") ? 1 : 0;
    out.left += note.detached ? 1 : 0;
    out.traces.insert(out.traces.end(), note.traces.begin(), note.traces.end());
  }
  return out;
}

// By their marks; a job without steps has none, and its processes are known by their notes.
std::size_t running_ranks(const std::string& folder) {
  std::size_t by_marks = 0, by_notes = 0, left = 0;
  for (const std::string& path : run::ring_files(folder)) {
    const auto ring = run::read_ring(path);
    if (!ring) continue;
    const run::RankProgress at = run::progress_of(*ring, 1);
    by_marks += at.running && !at.left ? 1 : 0;
    left += at.left ? 1 : 0;
  }
  if (by_marks + left > 0) return by_marks;
  std::vector<std::string> problems;
  for (const run::ProcessNote& note : run::read_process_notes(folder, problems)) {
    if (note.is_rank && run::is_running(note.host, note.pid)) by_notes++;
  }
  return by_notes;
}

std::string amount(std::int64_t steps, double time_s) {
  return time_s > 0 ? fmt::format("{:.6g} s", time_s) : report::format_plural(static_cast<std::size_t>(steps), "step");
}

std::string recorded_text(const Wanted& wanted) {
  const auto first = collect::chosen_start(wanted.folder, wanted.request);
  // Processes that were attached to count their steps from different moments: the numbers mean nothing to the job.
  if (wanted.time_s > 0 || wanted.detach || !first) return amount(wanted.steps, wanted.time_s);
  return fmt::format("steps {}-{}", *first, *first + wanted.steps - 1);
}

int withdraw(const Wanted& wanted) {
  constexpr int kInterrupted = 130;
  if (const auto written = collect::withdraw_request(wanted.folder, wanted.request); !written) {
    refused(written.error());
  } else {
    print_notice("withdrawn: the job stops recording at the end of a step, within a second or so");
  }
  return kInterrupted;
}

int wait_for(const Wanted& wanted, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  Recorded now = recorded_so_far(wanted);
  bool seen = false, ended = false;  // ranks that run
  const Interrupts interrupts;
  while (now.ranks + now.refused + now.not_asked < wanted.ranks && Clock::now() < end && !ended) {
    if (interrupts.came()) return withdraw(wanted);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const bool running = running_ranks(wanted.folder) > 0;
    ended = seen && !running;
    seen = seen || running;
    now = recorded_so_far(wanted);
  }
  // So that whoever comes back at once finds the job as it was.
  const auto patience = Clock::now() + std::chrono::seconds(5);
  while (wanted.detach && !ended && now.left < now.ranks && Clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    now = recorded_so_far(wanted);
  }
  const std::size_t asked = wanted.ranks - std::min(wanted.ranks, now.not_asked);
  if (asked == 0) {
    return refused({ErrorKind::not_found, "nothing was recorded: none of the job's ranks is one of --ranks",
                    wanted.folder, std::nullopt, "Leave out --ranks to record all of them"});
  }
  if (now.ranks == 0) {
    std::string why = now.refused > 0 ? now.why_refused
                      : ended         ? "the job ended before"
                      : seen          ? fmt::format("it did not come in {:.0f} s", timeout_s)
                                      : fmt::format("no step ended in {:.0f} s", timeout_s);
    if (!now.problems.empty()) why += "; a problem: " + now.problems.front();
    if (wanted.detach && now.refused == wanted.ranks) {  // nobody will ever write there, and it would be the newest run
      std::error_code ignored;
      std::filesystem::remove_all(wanted.folder, ignored);
      return refused({ErrorKind::not_found, "nothing was recorded: " + why, {}, std::nullopt, "Ask again afterwards"});
    }
    const bool stepless = !ended && now.refused == 0 && wanted.time_s == 0;
    return refused({ErrorKind::not_found, "nothing was recorded: " + why, wanted.folder, std::nullopt,
                    ended      ? "Ask while it runs"
                    : stepless ? "Look how the job stands: stepscope live " + wanted.folder +
                                     "; a job without steps is recorded with --time 5"
                               : "Look how the job stands: stepscope live " + wanted.folder});
  }
  for (const std::string& missing : run::wait_for_traces(wanted.folder, now.traces, 20)) {
    now.problems.push_back(missing + " was not written to its end");
  }
  std::string text = fmt::format("recorded {} of {}", recorded_text(wanted), report::format_plural(now.ranks, "rank"));
  if (now.cut > 0) text += wanted.detach ? fmt::format(", cut short after {}", now.steps) : ", cut short";
  if (now.ranks < asked) {
    text += fmt::format("; {} did not{}{}", asked - now.ranks, now.why_refused.empty() ? "" : ": ", now.why_refused);
  }
  text += run::cost_text(now.cost_s);
  if (!now.problems.empty()) text += "; a problem: " + now.problems.front();
  print_notice(text + ". Next: stepscope report " + wanted.folder);
  return now.ranks < asked || now.cut > 0 ? kPartial : kOk;
}

collect::Request request_of(const AttachOptions& options) {
  collect::Request request;
  request.steps = options.steps;
  request.ranks = options.ranks;
  request.seconds = options.time_s;
  request.start_unix_ns = collect::start_after(options.warmup_s);
  return request;
}

int write_and_wait(const std::string& folder, const collect::Request& request, std::size_t ranks,
                   const AttachOptions& options) {
  const auto id = collect::write_request(folder, request);
  if (!id) return refused(id.error());
  return wait_for({folder, *id, ranks, options.steps, options.time_s, request.detach},
                  options.timeout_s + options.time_s + options.warmup_s);
}

int ask_job(const std::string& folder, const AttachOptions& options) {
  const std::size_t running = running_ranks(folder);
  if (running == 0) {
    return refused({ErrorKind::not_found, "no rank of this run is known to be running", folder, std::nullopt,
                    "Give the folder of a job that runs, or the PID of one"});
  }
  print_notice(fmt::format("asked {} of {} for {}", report::format_plural(running, "rank"), folder,
                           amount(options.steps, options.time_s)));
  return write_and_wait(folder, request_of(options), running, options);
}

std::string capture_of(const AttachOptions& options) { return "steps=none ranks=all with=" + options.with; }

// Of a job that was started without us.
Result<std::string> new_run_folder(const collect::Process& process, const AttachOptions& options) {
  const std::string job = run::job_name(process.command);
  auto folder = run::make_run_folder(options.out, job, run::start_stamp(std::time(nullptr)));
  if (!folder) return folder;
  const run::Manifest manifest = run::start_manifest(version(), job, process.command, capture_of(options));
  if (const auto written = run::write_manifest(*folder, manifest); !written) return fail(written.error());
  return folder;
}

// The hooks come into the processes; the folder of the recording, or why there is none.
Result<std::string> enter(const collect::Process& process, const std::vector<collect::RankProcess>& ranks,
                          const AttachOptions& options, std::size_t& entered) {
  const auto hooks = collect::find_hooks();
  if (!hooks) return fail(hooks.error());
  auto folder = new_run_folder(process, options);
  if (!folder) return folder;
  const std::string capture = capture_of(options);
  const std::chrono::duration<double> timeout(options.timeout_s);
  const collect::Attachment done =
      collect::attach(ranks, collect::attach_source(*hooks, *folder, capture),
                      std::min(collect::kPatience, std::chrono::duration_cast<std::chrono::milliseconds>(timeout)));
  const bool refused = done.ranks.empty();
  for (const collect::NotAttached& one : done.failed) {
    if (refused && &one == &done.failed.front()) continue;  // is the error
    print_notice(fmt::format("process {}: {}", one.rank.process.pid, to_text(one.why)));
  }
  if (refused) {
    std::error_code ignored;
    std::filesystem::remove_all(*folder, ignored);  // it would be the newest run
    return fail(done.failed.front().why);
  }
  entered = done.ranks.size();
  std::int64_t longest = 0;
  for (const collect::Attached& one : done.ranks) longest = std::max(longest, one.stopped_ns);
  print_notice(fmt::format("attached to {} (entering took {} at most); recording {} into {}",
                           report::format_plural(entered, "process"), report::format_time(static_cast<double>(longest)),
                           amount(options.steps, options.time_s), *folder));
  return *folder;
}

// Torch's own way, for jobs that were started with KINETO_USE_DAEMON.
int record_by_daemon(const collect::Process& process, const std::vector<collect::RankProcess>& ranks,
                     const AttachOptions& options) {
  if (!collect::kineto::asks_daemon(ranks.front().process)) {
    return refused({ErrorKind::unsupported,
                    "the job does not ask a Kineto daemon",
                    {},
                    {},
                    "Start it with KINETO_USE_DAEMON=1, or attach with --method inject"});
  }
  const auto folder = new_run_folder(process, options);
  if (!folder) return refused(folder.error());
  const collect::kineto::Recording recording{*folder, options.time_s, options.warmup_s, options.steps, options.parts};
  print_notice(fmt::format("asking {} through Kineto's daemon for {}; it looks every 5 s",
                           report::format_plural(ranks.size(), "process"), amount(options.steps, options.time_s)));
  const auto done = collect::kineto::record(ranks, recording);
  if (!done) return refused(done.error());
  for (const std::string& problem : done->problems) print_notice(problem);
  if (done->traces.empty()) return refused({ErrorKind::not_found, "nothing was recorded", *folder, {}, ""});
  print_notice(fmt::format("recorded {} of {}. Next: stepscope report {}", amount(options.steps, options.time_s),
                           report::format_plural(done->traces.size(), "rank"), *folder));
  return done->traces.size() < ranks.size() ? kPartial : kOk;
}

int attach_to(const AttachOptions& options) {
  const collect::ProcessTable table = collect::ProcessTable::read();
  const auto process = collect::find_process(table, options.target);
  if (!process) return refused(process.error());
  const auto ranks = collect::find_ranks(table, process->pid);
  if (!ranks) return refused(ranks.error());
  const auto environment = collect::environment_of("/proc", ranks->front().process.pid);
  if (environment && environment->contains("STEPSCOPE_RUN")) return ask_job(environment->at("STEPSCOPE_RUN"), options);
  if (options.method == "daemon") return record_by_daemon(*process, *ranks, options);
  std::size_t entered = 0;
  const auto folder = enter(*process, *ranks, options, entered);
  if (!folder && options.method == "auto" && collect::kineto::asks_daemon(ranks->front().process)) {
    print_notice(to_text(folder.error()));
    return record_by_daemon(*process, *ranks, options);
  }
  if (!folder) return refused(folder.error());
  std::vector<pid_t> pids;
  for (const collect::RankProcess& one : *ranks) pids.push_back(one.process.pid);
  telemetry::SamplerBeside sampler({*folder, options.sampled, {}, {}});
  if (options.telemetry) {
    for (const std::string& sentence : sampler.look(pids)) print_notice(sentence);
  }
  collect::Request request = request_of(options);
  request.by_time = request.detach = true;
  const int code = write_and_wait(*folder, request, entered, options);
  for (const std::string& problem : sampler.end()) print_notice(problem);
  return code;
}

int attach(AttachOptions options) {
  if (options.target.empty() == options.job.empty()) {
    return refused({ErrorKind::usage,
                    "a running job is to be named",
                    {},
                    {},
                    "Give its PID or name, such as stepscope attach train.py, or its run folder with --job"});
  }
  std::error_code code;
  const auto settings = collect::read_settings(options.typed, std::filesystem::current_path(code).string());
  if (!settings) return refused(settings.error());
  options.out = settings->out;
  options.ranks = settings->capture.ranks;
  options.parts = settings->capture.with;
  options.telemetry = settings->telemetry;
  options.sampled = settings->sampled;
  options.with = collect::to_text(options.parts);
  if (options.job.empty()) return attach_to(options);
  const auto folder = find_run(options.job, options.out);
  return folder ? ask_job(*folder, options) : refused(folder.error());
}

constexpr const char* kAttachExamples = R"(Examples:
  stepscope attach 4711                the job that process 4711 belongs to
  stepscope attach train.py --steps 5  by the name of its script
  stepscope attach serve.py --time 5   a job without steps, such as a server
  stepscope attach --job stepscope     the newest run that was started with
                                       stepscope run; needs no rights

All ranks of the job on this host record the same steps. Afterwards the job is
as it was before. Attaching to a PID needs the right to trace the process:
stepscope doctor says whether this machine grants it. A job that was started
with KINETO_USE_DAEMON=1 is recorded without it (--method daemon). What --ranks,
--with, --telemetry and --out do not say is as for stepscope run:
STEPSCOPE_WITH, or with in stepscope.toml.
Exit codes: 0 recorded, 1 not, 4 not by all ranks or not to the end.)";

void set_up_attach(CLI::App& app, int& code) {
  auto options = std::make_shared<AttachOptions>();
  const auto setting = [&](const char* name, const char* meaning) {
    app.add_option_function<std::string>(
        std::string("--") + name, [options, name](const std::string& text) { options->typed[name] = text; }, meaning);
  };
  app.add_option("target", options->target, "PID or name of a process of the job");
  app.add_option("--job", options->job, "Run folder of a job that runs under stepscope run");
  app.add_option("--steps", options->steps, "How many steps to record (default 3)")->check(CLI::Range(1, 10'000));
  auto* const time = app.add_option("--time", options->time_s, "How long to record (5, 500ms, 2m), instead of steps");
  time->transform(duration(0.1, 3600))->excludes("--steps");
  app.add_option("--warmup", options->warmup_s, "How long to wait before that (default 0)")
      ->transform(duration(0, 86400))
      ->needs(time);
  setting("ranks", "Ranks to record (default all)");
  setting("with", "What to record (default shapes,memory,modules)");
  app.add_option("--method", options->method,
                 "inject: enter the processes; daemon: answer as Kineto's daemon; auto (default): the first that works")
      ->check(CLI::IsMember({"auto", "inject", "daemon"}));
  setting("telemetry", "Collectors that sample the machine meanwhile, or off (default all that are here)");
  setting("out", "Folder of all runs (default ./stepscope)");
  app.add_option("--timeout", options->timeout_s, "How long to wait for the steps (default 5m)")
      ->transform(duration(1, 1e6));
  app.footer(kAttachExamples);
  app.callback([options, &code] { code = attach(*options); });
}

}  // namespace

Command attach_command() { return {"attach", "Record some steps of a job that runs already", set_up_attach}; }

}  // namespace stepscope::cli
