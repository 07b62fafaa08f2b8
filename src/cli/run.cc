// `stepscope run -- CMD…`: a job, unchanged, with a recording of some of its steps beside it.
//
// Everything this command says is one line on stderr when the job starts and one when it has ended; stdin, stdout and
// the exit code are the job's. Whatever goes wrong on our side is said there, and the job runs.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <optional>

#include "base/version.h"
#include "cli/command.h"
#include "cli/run/memory_pages.h"
#include "cli/run/sentences.h"
#include "cli/setting_options.h"
#include "cli/terminal.h"
#include "collect/collect.h"
#include "collect/late_attach.h"
#include "collect/nsys.h"
#include "collect/requests.h"
#include "collect/settings.h"
#include "collect/telemetry/beside.h"
#include "run/manifest.h"
#include "run/own_traces.h"
#include "run/run_folder.h"
#include "run/tasks.h"

namespace stepscope::cli {
namespace fs = std::filesystem;
namespace telemetry = collect::telemetry;
namespace {

collect::Arguments& job_arguments() {
  static collect::Arguments words;
  return words;
}

// `script.py …` and `-m module …` mean Python, as python itself reads them.
collect::Arguments whole_command(collect::Arguments words) {
  const std::string& first = words.front();
  const bool script = first.size() > 3 && first.substr(first.size() - 3) == ".py" && ::access(first.c_str(), X_OK) != 0;
  if (first == "-m" || script) words.insert(words.begin(), "python3");
  return words;
}

bool has_gpu() {
  constexpr std::array kDevices{"/dev/nvidiactl", "/dev/kfd", "/dev/dxg"};
  return std::any_of(kDevices.begin(), kDevices.end(), [](const char* path) { return ::access(path, F_OK) == 0; });
}

// The job without us, and the reason in the place of the first line. A signal that was to ask for a recording is still
// not the job's: it would end it.
int run_plain(const collect::Arguments& command, const collect::Settings& settings, const Error& reason) {
  collect::Beside beside;
  if (settings.trigger == collect::Trigger::signal) beside = {SIGUSR2, [] {}, {}, {}, {}};
  print_notice("the job runs without a recording: " + to_text(reason));
  const collect::Ending ending = collect::run_job(command, {}, beside);
  if (!ending.failure.empty()) print_notice(command.front() + " could not be started: " + ending.failure);
  return ending.code;
}

// Writes a request each time the signal comes; what fails is told at the end.
collect::Beside requester(const std::string& folder, const collect::Capture& capture,
                          std::vector<std::string>& problems) {
  return {SIGUSR2,
          [folder, ranks = capture.ranks, &problems] {
            const auto written = collect::write_request(folder, {collect::kRequestedSteps, ranks});
            if (!written) problems.push_back(to_text(written.error()));
          },
          {},
          {},
          {}};
}

// The folder of a job that never started, and those above it that are empty and were made for it.
void forget_run(const fs::path& folder, const fs::path& new_out) {
  std::error_code code;
  fs::remove_all(folder, code);
  fs::remove(folder.parent_path(), code);
  if (!new_out.empty()) fs::remove(new_out, code);
}

void wait_for_recordings(const std::string& folder, const std::vector<run::ProcessNote>& processes,
                         run::Manifest& manifest) {
  constexpr double kPatienceS = 20;
  std::vector<std::string> announced;
  for (const run::ProcessNote& note : processes) {
    announced.insert(announced.end(), note.traces.begin(), note.traces.end());
  }
  for (const std::string& trace : run::wait_for_traces(folder, announced, kPatienceS)) {
    manifest.problems.push_back(trace + " was not written to its end");
  }
}

// Where this run is written, and whether other tasks of the same launch write there too.
struct Place {
  std::optional<run::Task> task;
  std::string folder;

  bool speaks() const { return !task || task->first(); }
  Result<void> write(const run::Manifest& manifest) const {
    return task ? run::write_task(folder, *task, manifest) : run::write_manifest(folder, manifest);
  }
};

// nsys has its own way to record several tasks, with a report each.
Result<Place> make_place(const collect::Settings& settings, const std::string& job, bool alone) {
  Place place;
  if (!alone) place.task = run::this_task([](const char* name) -> const char* { return std::getenv(name); });
  const auto folder = place.task ? run::share_run_folder(settings.out, job, *place.task)
                                 : run::make_run_folder(settings.out, job, run::start_stamp(std::time(nullptr)));
  if (!folder) return fail(folder.error());
  place.folder = *folder;
  return place;
}

// What the processes below this command said. Where tasks share the folder, those of this host: when the last task of a
// host ends, what still writes there may be ended too.
std::vector<run::ProcessNote> own_processes(const Place& place, const run::Manifest& manifest) {
  std::vector<run::ProcessNote> own = manifest.processes;
  if (place.task) {
    std::erase_if(own, [&](const run::ProcessNote& note) { return !note.host.starts_with(manifest.host); });
  }
  return own;
}

// What was sampled of a command that failed at once, such as a mistyped one: it would hide the run before.
void forget_samples(const Place& place, const run::Manifest& manifest) {
  constexpr std::int64_t kAtOnceNs = 5'000'000'000;
  const bool failed = manifest.exit_code != 0 && manifest.processes.empty() && !place.task;
  if (!failed || *manifest.ended_unix_ns - manifest.started_unix_ns > kAtOnceNs) return;
  std::error_code code;
  fs::remove_all(fs::path(place.folder) / "telemetry", code);
}

// The job has ended: what it left is gathered, and said.
void finish(const Place& place, run::Manifest& manifest, const collect::Settings& settings, const std::string& nsys,
            const collect::Ending& ending) {
  constexpr double kFinishingS = 2;  // twice of what a child has that writes for an ended process
  const std::string& folder = place.folder;
  manifest.processes = run::settled_process_notes(folder, kFinishingS, manifest.problems);
  forget_samples(place, manifest);
  const std::vector<run::ProcessNote> own = own_processes(place, manifest);
  wait_for_recordings(folder, own, manifest);
  const std::size_t own_traces = run::take_own_traces(folder, own, manifest.problems);
  if (!nsys.empty()) {
    for (std::string& problem : collect::export_reports(nsys, folder)) manifest.problems.push_back(std::move(problem));
  }
  make_memory_pages(folder, manifest.host, manifest.problems);
  auto written = place.write(manifest);
  if (!place.speaks()) return;
  if (place.task && ending.code == 0) {  // the others end at the same time, if all is well
    run::wait_for_tasks(folder, kFinishingS);
    manifest.processes = run::read_process_notes(folder, manifest.problems);
    written = place.write(manifest);
  }
  Outcome outcome = outcome_of(folder, manifest);
  outcome.own_traces = own_traces;
  if (!written && outcome.problem.empty()) outcome.problem = to_text(written.error());
  print_notice(end_text(outcome, folder, settings, ending));
}

// `nsys`: the program that records; empty: torch.profiler does.
int run_recorded(const collect::Arguments& command, const collect::Settings& settings, const std::string& hooks,
                 const std::string& nsys) {
  const std::string job = settings.job.empty() ? run::job_name(command) : run::job_name({settings.job});
  std::error_code code;
  const bool had_out = fs::exists(settings.out, code);
  const auto place = make_place(settings, job, !nsys.empty());
  if (!place) return run_plain(command, settings, place.error());
  const std::string& folder = place->folder;
  run::Manifest manifest = run::start_manifest(version(), job, command, collect::to_text(settings.capture));
  if (const auto written = place->write(manifest); !written) return run_plain(command, settings, written.error());
  if (!nsys.empty()) fs::create_directory(fs::path(folder) / run::kNsysFolder, code);
  collect::Beside beside;
  if (settings.trigger == collect::Trigger::signal) beside = requester(folder, settings.capture, manifest.problems);
  beside.ready = [&] {
    if (!place->speaks()) return;
    print_notice(fmt::format("{} · recording {}{} into {}{}", version(), plan_text(settings, ::getpid()),
                             has_gpu() ? "" : " on the CPU (no GPU here)", shown_path(folder),
                             settings.file.empty() ? "" : " (settings: " + settings.file + ")"));
  };
  collect::LateAttach late(hooks, folder, collect::to_text(settings.capture));
  std::optional<telemetry::SamplerBeside> sampler;
  if (settings.telemetry)
    sampler.emplace(telemetry::BesideOptions{folder, settings.sampled, settings.openmetrics, job});
  const auto sample = [&](pid_t process) {
    if (!sampler) return;
    for (const std::string& sentence : sampler->look({process})) print_notice(sentence);
  };
  beside.began = sample;
  beside.look = [&](pid_t process) {
    for (const std::string& sentence : late.look(process)) print_notice(sentence);
    sample(process);
  };
  const collect::Ending ending =
      collect::run_job(nsys.empty() ? command : collect::nsys_command(nsys, settings, folder, command),
                       collect::job_environment(hooks, folder, settings.capture), beside);
  if (sampler) {
    for (std::string& problem : sampler->end()) manifest.problems.push_back(std::move(problem));
    sampler.reset();
  }
  manifest.ended_unix_ns = run::unix_now_ns();
  manifest.exit_code = ending.code;
  manifest.signal = ending.signal;
  if (!ending.failure.empty()) {
    if (place->task) {
      (void)place->write(manifest);  // the folder is not this task's alone
    } else {
      forget_run(folder, had_out ? "" : settings.out);
    }
    print_notice(fmt::format("'{}' could not be started: {}", command.front(), ending.failure));
    return ending.code;
  }
  finish(*place, manifest, settings, nsys, ending);
  return ending.code;
}

int run(const collect::Typed& typed) {
  if (job_arguments().empty()) {
    return refused({ErrorKind::usage,
                    "no command to run",
                    {},
                    {},
                    "Write it behind --, such as stepscope run -- python train.py"});
  }
  std::error_code code;
  const auto settings = collect::read_settings(typed, fs::current_path(code).string());
  if (!settings) return refused(settings.error());
  for (const std::string& slip : settings->slips) print_notice(slip);
  const collect::Arguments command = whole_command(job_arguments());
  const auto nsys = settings->capture.nsys ? collect::nsys_program() : std::string();
  if (!nsys) return refused(nsys.error());
  const auto hooks = collect::find_hooks();
  return hooks ? run_recorded(command, *settings, *hooks, *nsys) : run_plain(command, *settings, hooks.error());
}

constexpr const char* kRunExamples = R"(Examples:
  stepscope run -- python train.py                     steps 10-14 (a job of few steps: steps 1-5)
  stepscope run --steps 100:103 -- torchrun --nproc-per-node 8 train.py
  stepscope run --seconds 5:7 -- python serve.py       a job without an optimizer
  stepscope run --trigger USR2 --ranks 0,last -- python train.py
  stepscope run train.py --lr 3e-4                     the same as: stepscope run -- python3 train.py --lr 3e-4

Nothing of the job is changed: its output, input and exit code are its own
(128 + signal when it was killed). A step ends with the optimizer's step().
)";

void set_up_run(CLI::App& app, int& code) {
  const SettingOptions options(app);
  app.footer(std::string(kRunExamples) + kSettingsFooter);
  app.callback([options, &code] { code = run(options.typed()); });
}

}  // namespace

Command run_command() { return {"run", "Run a job unchanged and record some of its steps", set_up_run}; }

int take_job_arguments(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "run") return argc;
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool own = word.size() > 1 && word.front() == '-' && word != "--" && word != "-m";
    if (own) {
      i += values_of_option(word, argv + i + 1, argv + argc);
      continue;
    }
    const int first = word == "--" ? i + 1 : i;
    job_arguments().assign(argv + first, argv + argc);
    return i;
  }
  return argc;
}

}  // namespace stepscope::cli
