// What answers know of each step as curves over the number of the step, and the event files that TensorBoard draws them
// from.
//
// They come from the tables `steps` of all answers, so that an analysis that has one appears without a word here: what
// stands before the column `step` says whose step it is (rank, device), each measure behind it is a curve. Beside them
// stand the times of all steps of the job, where the answer history is asked for and marks were kept (Run::history).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::write {

struct ScalarCurve {
  std::string tag;      // "flops/mfu", "memory/cuda:0/peak_bytes", "steps/wall_s": times are in seconds
  std::string meaning;  // one sentence
};

struct ScalarStep {
  std::int64_t number = 0;
  std::int64_t unix_ns = 0;                            // when it ended; see write/step_scalars/known_steps.h
  std::vector<std::pair<std::size_t, double>> values;  // by index of the curve; what is unknown is left out
};

struct RankScalars {
  std::string name;  // "rank0", a run of TensorBoard and its folder
  std::vector<ScalarCurve> curves;
  std::vector<ScalarStep> steps;  // by number
};

struct StepScalars {
  std::vector<RankScalars> ranks;     // by rank; empty: no answer tells of steps that have numbers
  std::vector<std::string> left_out;  // what is not in them, and where times of day come from; a sentence each
};

StepScalars step_scalars(const Run& run, std::span<const Answer> answers);

// FOLDER/NAME/events.out.tfevents.stepscope. One name for ever: writing again replaces the file, so that no curve is
// there twice, and files of others stay.
std::string event_file_path(const std::string& folder, const RankScalars& rank);

// Makes the folders that are missing; each file appears when it is whole.
Result<void> write_event_files(const StepScalars& scalars, const std::string& folder);

}  // namespace stepscope::write
