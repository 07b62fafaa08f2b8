// Memory of a rank's host that its tensors let go, as the recording has it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stepscope::diagnose {

struct LetGo {
  std::int64_t time_ns = 0, bytes = 0;  // clock of its file
};

// By that thread, of that many bytes or more each; by time.
std::vector<LetGo> let_go(const Trace& trace, TrackId thread, std::int64_t least_bytes);

}  // namespace stepscope::diagnose
