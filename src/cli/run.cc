// `stepscope run -- CMD…`: a job, unchanged, with a recording of some of its steps beside it.
//
// Everything this command says is one line on stderr when the job starts and one when it has ended; stdin, stdout and
// the exit code are the job's. Whatever goes wrong on our side is said there, and the job runs.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/version.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "collect/collect.h"
#include "run/manifest.h"
#include "run/run_folder.h"

extern char** environ;

namespace stepscope::cli {
namespace fs = std::filesystem;
namespace {

struct RunOptions {
  std::string steps, seconds, out = "stepscope", name;
  bool no_shapes = false, no_memory = false;
  collect::Capture capture;
};

constexpr std::array kOptionsWithValue{"--steps", "--seconds", "--out", "--name"};

collect::Arguments& job_arguments() {
  static collect::Arguments words;
  return words;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// `script.py …` and `-m module …` mean Python, as python itself reads them.
collect::Arguments whole_command(collect::Arguments words) {
  const std::string& first = words.front();
  const bool script = first.size() > 3 && first.substr(first.size() - 3) == ".py" && ::access(first.c_str(), X_OK) != 0;
  if (first == "-m" || script) words.insert(words.begin(), "python3");
  return words;
}

// Shorter to read and to type, where the folder lies below the current one.
std::string shown(const std::string& path) {
  std::error_code code;
  const fs::path relative = fs::path(path).lexically_relative(fs::current_path(code));
  return code || relative.empty() || *relative.begin() == ".." ? path : relative.string();
}

bool has_gpu() {
  constexpr std::array kDevices{"/dev/nvidiactl", "/dev/kfd", "/dev/dxg"};
  return std::any_of(kDevices.begin(), kDevices.end(), [](const char* path) { return ::access(path, F_OK) == 0; });
}

std::string window_text(const collect::Capture& capture) {
  if (!capture.seconds.empty()) return "seconds " + capture.seconds + " after the import of torch";
  const std::string steps = capture.steps.empty() ? "10:15" : capture.steps;
  const int first = std::stoi(steps);
  const int last = std::stoi(steps.substr(steps.find(':') + 1)) - 1;
  return first == last ? fmt::format("step {}", first) : fmt::format("steps {}-{}", first, last);
}

// What became of the recording, over all processes of the job.
struct Outcome {
  std::size_t traces = 0;
  std::uintmax_t bytes = 0;
  std::int64_t steps_seen = 0;
  std::optional<std::int64_t> first_step, last_step;
  bool on_gpu = false, own_profiler = false, torch_seen = false;
  std::string problem;
};

Outcome outcome_of(const std::string& folder, const run::Manifest& manifest) {
  Outcome out;
  for (const std::string& trace : run::trace_files(folder)) {
    std::error_code code;
    const std::uintmax_t size = fs::file_size(fs::path(folder) / trace, code);
    ++out.traces;
    out.bytes += code ? 0 : size;
  }
  for (const run::ProcessNote& note : manifest.processes) {
    out.torch_seen = true;
    out.on_gpu |= note.device != "cpu" && !note.device.empty();
    out.own_profiler |= note.own_profiler;
    out.steps_seen = std::max(out.steps_seen, note.steps_seen);
    if (note.first_step) out.first_step = std::min(out.first_step.value_or(*note.first_step), *note.first_step);
    if (note.last_step) out.last_step = std::max(out.last_step.value_or(*note.last_step), *note.last_step);
    if (out.problem.empty()) out.problem = note.first_problem;
  }
  if (out.problem.empty() && !manifest.problems.empty()) out.problem = manifest.problems.front();
  return out;
}

std::string size_text(std::uintmax_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  return bytes < 1'000'000 ? fmt::format("{} kB", bytes / 1000)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string why_nothing(const Outcome& out, const collect::Capture& capture, const collect::Ending& ending) {
  if (out.own_profiler)
    return "the job uses torch.profiler itself, and torch has room for one: its own files can be reported on";
  if (!out.problem.empty()) return out.problem;
  if (!ending.signal && ending.code != 0) {
    return fmt::format("the job ended with exit code {}{}", ending.code,
                       out.torch_seen ? fmt::format(" after {} optimizer steps", out.steps_seen) : " before torch");
  }
  if (!out.torch_seen) {
    return "no Python process of the job imported torch under the hooks (python -E, -I and -S switch them off)";
  }
  const std::string how = ending.signal ? fmt::format("was ended by signal {}", *ending.signal) : "ended";
  if (!capture.seconds.empty())
    return "the job " + how + " before its window began; try an earlier one, such as --seconds 0:2";
  if (out.steps_seen == 0) {
    return "no optimizer step was seen before the job " + how +
           "; a job without an optimizer is recorded with --seconds 0:2";
  }
  return fmt::format("the job {} after {} optimizer steps; try --steps {}:{}", how, out.steps_seen,
                     out.steps_seen > 2 ? 1 : 0, std::max<std::int64_t>(out.steps_seen, 1));
}

std::string end_text(const Outcome& out, const std::string& folder, const collect::Capture& capture,
                     const collect::Ending& ending) {
  if (out.traces == 0) return "nothing was recorded: " + why_nothing(out, capture, ending) + ". See " + shown(folder);
  std::string text = "recorded ";
  if (!out.first_step) {
    text += "a stretch of time without whole steps";
  } else if (*out.first_step == *out.last_step) {
    text += fmt::format("step {}", *out.first_step);
  } else {
    text += fmt::format("steps {}-{}", *out.first_step, *out.last_step);
  }
  // A killed process could not say how far it came.
  if (out.first_step && out.steps_seen > 0 && !ending.signal) text += fmt::format(" of {}", out.steps_seen);
  if (out.traces > 1) text += fmt::format(" in {} processes", out.traces);
  text += fmt::format(", {}, {}", out.on_gpu ? "CPU and GPU" : "CPU only (torch used no GPU)", size_text(out.bytes));
  if (!out.problem.empty()) text += fmt::format("; a problem: {}", out.problem);
  return text + ". Next: stepscope report " + shown(folder);
}

run::Manifest first_manifest(const std::string& job, const collect::Arguments& command,
                             const collect::Capture& capture) {
  run::Manifest manifest;
  manifest.version = version();
  manifest.job = job;
  manifest.command = command;
  std::error_code code;
  manifest.directory = fs::current_path(code).string();
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  manifest.host = host;
  manifest.capture = collect::to_text(capture);
  manifest.environment = run::explaining_environment(environ);
  manifest.started_unix_ns = now_ns();
  return manifest;
}

// The job without us, and the reason in the place of the first line.
int run_plain(const collect::Arguments& command, const Error& reason) {
  print_notice("the job runs without a recording: " + to_text(reason));
  const collect::Ending ending = collect::run_job(command, {});
  if (!ending.failure.empty()) print_notice(command.front() + " could not be started: " + ending.failure);
  return ending.code;
}

// The folder of a job that never started, and those above it that are empty and were made for it.
void forget_run(const fs::path& folder, const fs::path& new_out) {
  std::error_code code;
  fs::remove_all(folder, code);
  fs::remove(folder.parent_path(), code);
  if (!new_out.empty()) fs::remove(new_out, code);
}

int run_recorded(const collect::Arguments& command, const RunOptions& options, const std::string& hooks) {
  const std::string job = options.name.empty() ? run::job_name(command) : run::job_name({options.name});
  std::error_code code;
  const bool had_out = fs::exists(options.out, code);
  const auto folder = run::make_run_folder(options.out, job, run::start_stamp(std::time(nullptr)));
  if (!folder) return run_plain(command, folder.error());
  run::Manifest manifest = first_manifest(job, command, options.capture);
  if (const auto written = run::write_manifest(*folder, manifest); !written) return run_plain(command, written.error());
  print_notice(fmt::format("{} · recording {}{} into {}", version(), window_text(options.capture),
                           has_gpu() ? "" : " on the CPU (no GPU here)", shown(*folder)));
  const collect::Ending ending = collect::run_job(command, collect::job_environment(hooks, *folder, options.capture));
  if (!ending.failure.empty()) {
    forget_run(*folder, had_out ? "" : options.out);
    print_notice(fmt::format("'{}' could not be started: {}", command.front(), ending.failure));
    return ending.code;
  }
  manifest.ended_unix_ns = now_ns();
  manifest.exit_code = ending.code;
  manifest.signal = ending.signal;
  manifest.processes = run::read_process_notes(*folder, manifest.problems);
  const auto written = run::write_manifest(*folder, manifest);
  Outcome outcome = outcome_of(*folder, manifest);
  if (!written && outcome.problem.empty()) outcome.problem = to_text(written.error());
  print_notice(end_text(outcome, *folder, options.capture, ending));
  return ending.code;
}

int run(RunOptions& options) {
  if (job_arguments().empty()) {
    return refused({ErrorKind::usage,
                    "no command to run",
                    {},
                    {},
                    "Write it behind --, such as stepscope run -- python train.py"});
  }
  if (!options.steps.empty()) {
    const auto steps = collect::parse_steps(options.steps);
    if (!steps) return refused(steps.error());
    options.capture.steps = *steps;
  }
  if (!options.seconds.empty()) {
    const auto seconds = collect::parse_seconds(options.seconds);
    if (!seconds) return refused(seconds.error());
    options.capture.seconds = *seconds;
  }
  options.capture.shapes = !options.no_shapes;
  options.capture.memory = !options.no_memory;
  const collect::Arguments command = whole_command(job_arguments());
  const auto hooks = collect::find_hooks();
  return hooks ? run_recorded(command, options, *hooks) : run_plain(command, hooks.error());
}

constexpr const char* kExamples = R"(Examples:
  stepscope run -- python train.py                      steps 10-14 (a job of few steps: steps 1-5)
  stepscope run --steps 100:103 -- torchrun --nproc-per-node 8 train.py
  stepscope run --seconds 5:7 -- python serve.py        a job without an optimizer
  stepscope run train.py --lr 3e-4                      the same as: stepscope run -- python3 train.py --lr 3e-4

Nothing of the job is changed: its output, input and exit code are its own (128 + signal when it was killed).
A step ends with the optimizer's step(); numbers count from 0, END of a window is not recorded.)";

void set_up(CLI::App& app, int& code) {
  auto options = std::make_shared<RunOptions>();
  if (const char* out = std::getenv("STEPSCOPE_OUT"); out != nullptr && *out != '\0') options->out = out;
  app.add_option("--steps", options->steps, "Optimizer steps to record, START:END (default 10:15)");
  app.add_option("--seconds", options->seconds, "Seconds after the import of torch to record, START:END")
      ->excludes("--steps");
  app.add_option("--out", options->out, "Folder of all runs (default ./stepscope, or STEPSCOPE_OUT)");
  app.add_option("--name", options->name, "Name of the job in that folder (default: the script's)");
  app.add_flag("--no-shapes", options->no_shapes, "Leave out the input shapes of ops");
  app.add_flag("--no-memory", options->no_memory, "Leave out allocations and frees");
  app.add_flag("--stack", options->capture.stack, "Record Python stacks too: much larger traces");
  app.footer(kExamples);
  app.callback([options, &code] { code = run(*options); });
}

bool takes_value(std::string_view word) {
  return std::find(kOptionsWithValue.begin(), kOptionsWithValue.end(), word) != kOptionsWithValue.end();
}

}  // namespace

Command run_command() { return {"run", "Run a job unchanged and record some of its steps", set_up}; }

int take_job_arguments(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "run") return argc;
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool own = word.size() > 1 && word.front() == '-' && word != "--" && word != "-m";
    if (own) {
      if (takes_value(word)) ++i;
      continue;
    }
    const int first = word == "--" ? i + 1 : i;
    job_arguments().assign(argv + first, argv + argc);
    return i;
  }
  return argc;
}

}  // namespace stepscope::cli
