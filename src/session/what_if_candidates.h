// Changes that anyone would try first on a recording, each with what it would be worth.
#pragma once

#include "model/answer.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::session {

// Most speedup first; those that concern nothing that was recorded are left out.
Table candidates_table(const Run& run, const simulate::Predictor& predictor);

}  // namespace stepscope::session
