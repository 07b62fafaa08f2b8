// What `stepscope run` says: one line when the job starts and one when it has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/collect.h"
#include "collect/settings.h"
#include "run/manifest.h"

namespace stepscope::cli {

// A path as it is shorter to read and to type, where it lies below the current folder.
std::string shown_path(const std::string& path);

// "steps 10-14 of ranks 0,last": what is going to be recorded. `pid`: whom the signal of --trigger USR2 is sent to.
std::string plan_text(const collect::Settings& settings, int pid);

// What became of the recording, over all processes of the job.
struct Outcome {
  std::size_t traces = 0, processes = 0;  // with a recording
  std::size_t own_traces = 0;             // of the traces, those that the job wrote itself
  std::size_t memory_traces = 0;          // ranks whose memory was measured
  std::size_t lost = 0;                   // ranks that ended in the middle of a part
  std::uintmax_t bytes = 0;
  std::int64_t steps_seen = 0;
  std::int64_t whole_steps = 0;  // recorded, of the process with most
  std::optional<std::int64_t> first_step, last_step;
  std::vector<std::int64_t> ranks;  // that the job had, ascending
  double cost_s = 0;                // of the job's time that recording took, of the process where it took most
  bool on_gpu = false, own_profiler = false, torch_seen = false;
  std::string problem;
};

Outcome outcome_of(const std::string& folder, const run::Manifest& manifest);

std::string end_text(const Outcome& out, const std::string& folder, const collect::Settings& settings,
                     const collect::Ending& ending);

}  // namespace stepscope::cli
