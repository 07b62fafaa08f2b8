// The steps as they are where nobody records them.
#pragma once

#include <vector>

#include "base/result.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {

struct Unrecorded {
  simulate::Rewrite rewrite;       // the costs without what recording adds, and copies as fast as they usually are
  simulate::Prediction now;        // the steps with these
  std::vector<StepId> long_steps;  // recorded ones of a kind that comes less often, and counts as often as it comes
};

// An error where nothing can be played.
Result<Unrecorded> without_recording(const Run& run, const simulate::Predictor& predictor);

}  // namespace stepscope::diagnose
