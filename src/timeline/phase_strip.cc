#include "timeline/phase_strip.h"

#include <algorithm>
#include <array>

#include "model/step_parts.h"

namespace stepscope::timeline {

PhaseStrip::PhaseStrip(const Trace& trace) {
  const auto phases = host_phases(trace);
  for (std::size_t phase = 1; phase < kPhases; phase++) {
    for (const Interval& when : phases[phase]) pieces_.push_back({when.start, when.end, static_cast<Phase>(phase)});
  }
  std::sort(pieces_.begin(), pieces_.end(),
            [](const PhasePiece& a, const PhasePiece& b) { return a.start_ns < b.start_ns; });
}

void PhaseStrip::query(std::int64_t from_ns, std::int64_t to_ns, std::int64_t merge_ns,
                       std::vector<PhasePiece>& out) const {
  PhasePiece open;
  std::array<std::int64_t, kPhases> times{};
  bool any = false;
  const auto flush = [&] {
    if (!any) return;
    open.phase = static_cast<Phase>(std::max_element(times.begin(), times.end()) - times.begin());
    out.push_back(open);
    any = false;
  };
  auto at = std::partition_point(pieces_.begin(), pieces_.end(),
                                 [&](const PhasePiece& piece) { return piece.end_ns <= from_ns; });
  for (; at != pieces_.end() && at->start_ns < to_ns; ++at) {
    const bool is_short = at->end_ns - at->start_ns < merge_ns;
    if (any && is_short && at->start_ns / merge_ns == open.start_ns / merge_ns) {
      open.end_ns = at->end_ns;
    } else {
      flush();
      if (!is_short) {
        out.push_back(*at);
        continue;
      }
      open = *at;
      times = {};
      any = true;
    }
    times[static_cast<std::size_t>(at->phase)] += at->end_ns - at->start_ns;
  }
  flush();
}

}  // namespace stepscope::timeline
