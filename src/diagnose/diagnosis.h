// Diagnosis: what bounds the steps of a run, what explains it, and what a fix of each explanation is worth.
#pragma once

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {

// The answer `advice`: findings of all causes, priced, those worth most first, and the partition of the steps behind
// them. An error where nothing can be played.
Result<Answer> advice(const Run& run, const simulate::Predictor& predictor);

}  // namespace stepscope::diagnose
