// Stacks in words: the few frames that say where, and all of them.
#pragma once

#include <string>

#include "model/cuda_snapshot.h"

namespace stepscope::snapshot {

// "model.py:42 forward < train.py:9 step": the innermost frames of the user's own Python, where there are any; else of
// any Python; else the operator of the backward pass or the innermost C++ function that says something. Empty: no
// stack.
std::string where_text(const CudaSnapshot& snapshot, StackId stack);

// "file:line function", innermost first, a line each.
std::string full_text(const CudaSnapshot& snapshot, StackId stack);

}  // namespace stepscope::snapshot
