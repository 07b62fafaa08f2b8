// The steps as they are where nobody records them.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {

struct Unrecorded {
  simulate::Rewrite rewrite;     // the costs without what recording adds, and copies as fast as they usually are
  simulate::Prediction now;      // the steps with these
  std::size_t now_and_then = 0;  // recorded steps of a kind that comes less often, and counts as often as it comes
};

// An error where nothing can be played.
Result<Unrecorded> without_recording(const Run& run, const simulate::Predictor& predictor);

}  // namespace stepscope::diagnose
