#include "run/tasks.h"

#include <fcntl.h>
#include <simdjson.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

namespace stepscope::run {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFolder = "tasks";
constexpr int kMostRuns = 1000;  // that one task starts, one after the other

std::optional<std::int64_t> number_in(const char* text) {
  std::int64_t number = 0;
  if (text == nullptr) return std::nullopt;
  const char* const end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, number);
  return read.ec == std::errc() && read.ptr == end && number >= 0 ? std::optional(number) : std::nullopt;
}

fs::path file_of(const fs::path& run_folder, const Task& task) {
  return run_folder / kFolder / (std::to_string(task.number) + ".json");
}

Error no_folder(const fs::path& path, int reason) {
  return {ErrorKind::unreadable,
          std::string("cannot make the run folder: ") + std::strerror(reason),
          path.string(),
          {},
          "Choose another folder with --out DIR"};
}

bool has_ended(const fs::path& manifest) {
  simdjson::dom::parser parser;
  simdjson::dom::element text;
  std::int64_t ended = 0;
  return parser.load(manifest.string()).get(text) == simdjson::SUCCESS &&
         text["ended_unix_ns"].get(ended) == simdjson::SUCCESS;
}

}  // namespace

std::optional<Task> this_task(const std::function<const char*(const char*)>& variable) {
  const auto first_of = [&](const char* name, const char* older) {
    const auto found = number_in(variable(name));
    return found ? found : number_in(variable(older));
  };
  const auto job = number_in(variable("SLURM_JOB_ID"));
  const auto step = first_of("SLURM_STEP_ID", "SLURM_STEPID");  // not there in a batch script itself
  const auto number = number_in(variable("SLURM_PROCID"));
  const auto count = first_of("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
  if (!job || !step || !number || !count || *count < 2 || *number >= *count) return std::nullopt;
  Task task{"slurm-" + std::to_string(*job) + "." + std::to_string(*step), *number, *count};
  if (const auto restarts = number_in(variable("SLURM_RESTART_COUNT")).value_or(0); restarts > 0) {
    task.launch += ".restart" + std::to_string(restarts);
  }
  return task;
}

Result<std::string> share_run_folder(std::string_view out, std::string_view job, const Task& task) {
  std::error_code code;
  const fs::path parent = fs::absolute(fs::path(out), code) / job;
  for (int run = 1; run <= kMostRuns && !code; ++run) {
    const fs::path folder = parent / (run == 1 ? task.launch : task.launch + "-" + std::to_string(run));
    fs::create_directories(folder / kFolder, code);
    if (code) break;
    const fs::path own = file_of(folder, task);
    const int file = open(own.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file >= 0) {
      close(file);
      return folder.lexically_normal().string();
    }
    if (errno != EEXIST) return fail(no_folder(own, errno));
  }
  return fail(no_folder(parent, code ? code.value() : EEXIST));
}

Result<void> write_task(const std::string& run_folder, const Task& task, const Manifest& manifest) {
  auto written = write_manifest_as(file_of(run_folder, task).string(), manifest);
  return written && task.first() ? write_manifest(run_folder, manifest) : written;
}

bool job_has_ended(const std::string& run_folder) {
  if (!has_ended(fs::path(run_folder) / "run.json")) return false;
  std::error_code code;
  for (fs::directory_iterator at(fs::path(run_folder) / kFolder, code); !code && at != fs::directory_iterator();
       at.increment(code)) {
    if (at->path().extension() == ".json" && !has_ended(at->path())) return false;
  }
  return true;
}

bool has_open_job(const std::string& run_folder) {
  simdjson::dom::parser parser;
  simdjson::dom::element manifest;
  std::string_view capture;
  return parser.load((fs::path(run_folder) / "run.json").string()).get(manifest) == simdjson::SUCCESS &&
         manifest["capture"].get(capture) == simdjson::SUCCESS && !capture.empty() && !job_has_ended(run_folder);
}

void wait_for_tasks(const std::string& run_folder, double patience_s) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(patience_s);
  while (Clock::now() < end && !job_has_ended(run_folder)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

}  // namespace stepscope::run
