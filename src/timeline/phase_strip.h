// What the host of a rank was doing, phase by phase, as one strip over time: at each instant the phase that the report
// counts (model/step_parts.h). Where no phase is known there is nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stepscope::timeline {

struct PhasePiece {
  std::int64_t start_ns = 0, end_ns = 0;  // on the clock of the file
  Phase phase = Phase::other;             // of several: the one with most time
};

class PhaseStrip {
 public:
  explicit PhaseStrip(const Trace& trace);

  // The pieces that overlap [from_ns, to_ns), by time; those shorter than `merge_ns` are one where they begin in the
  // same stretch of that length.
  void query(std::int64_t from_ns, std::int64_t to_ns, std::int64_t merge_ns, std::vector<PhasePiece>& out) const;

 private:
  std::vector<PhasePiece> pieces_;  // by start; disjoint
};

}  // namespace stepscope::timeline
