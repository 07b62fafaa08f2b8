// Tasks that a launcher starts side by side, each under its own `stepscope run`: `srun stepscope run -- python
// train.py`. They are one job and share a run folder, without a word between them: the launcher told each the same
// name.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "run/manifest.h"

namespace stepscope::run {

struct Task {
  std::string launch;       // the same in all tasks: slurm-1234.0
  std::int64_t number = 0;  // 0 is the one that writes run.json and speaks to the user
  std::int64_t count = 1;

  bool first() const { return number == 0; }
};

// `variable` looks into the environment and may answer nullptr. Nothing where this process is alone.
std::optional<Task> this_task(const std::function<const char*(const char*)>& variable);

// <out>/<job>/<launch>, made by the task that comes first; with -2, -3 … behind it where this task had a run there
// before, as in a script that starts several. Each task finds its own run in the same one.
Result<std::string> share_run_folder(std::string_view out, std::string_view job, const Task& task);

// What ran in one task, and what became of it: tasks/N.json, and run.json for the first.
Result<void> write_task(const std::string& run_folder, const Task& task, const Manifest& manifest);

// Whether a job was started here (a monitor starts none) that has not been seen to end.
bool has_open_job(const std::string& run_folder);
// Whether all that began in this folder has ended: run.json and tasks/*.json say so.
bool job_has_ended(const std::string& run_folder);

// Waits for that, `patience_s` at most.
void wait_for_tasks(const std::string& run_folder, double patience_s);

}  // namespace stepscope::run
