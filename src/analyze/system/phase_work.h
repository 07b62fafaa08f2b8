// What the host did in each phase, from the recorded steps: operators, and the Python between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stepscope::analyze::telemetry {

struct PhaseWork {
  std::int64_t rank = 0;
  Phase phase = Phase::other;
  std::string name;  // of the innermost operator, or of what stood around Python: a module, a range
  bool is_python = false;
  std::int64_t self_ns = 0;   // over all recorded steps and host threads
  std::int64_t phase_ns = 0;  // of all that the host did in this phase
};

// The heaviest of each phase and rank, by rank and phase, heaviest first.
std::vector<PhaseWork> phase_work(const Run& run);

}  // namespace stepscope::analyze::telemetry
