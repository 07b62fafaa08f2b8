#include "run/progress.h"

#include <algorithm>
#include <limits>
#include <map>

#include "run/living.h"

namespace stepscope::run {
namespace {

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

RankProgress progress_of(const Ring& ring, std::size_t window) {
  RankProgress out;
  out.host = ring.host;
  out.pid = ring.pid;
  out.rank = ring.rank;
  out.world_size = ring.world_size;
  out.started_unix_ns = ring.started_unix_ns;
  out.running = is_running(ring.host, ring.pid);
  out.phase_now = ring.phase_now;
  out.phase_since_ns = ring.phase_since_ns;
  // Of a phase of a step: what a file says may be any number, and all of them are added up.
  constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max() / std::int64_t{2 * kMarkPhases};
  std::map<std::int64_t, std::array<std::int64_t, kMarkPhases>> phases;  // by step
  std::vector<const Mark*> steps;
  for (const Mark& mark : ring.marks) {
    out.last_end_ns = std::max(out.last_end_ns, mark.start_ns + mark.dur_ns);
    out.left = mark.kind == MarkKind::part && mark.phase == kHooksLeft;
    if (mark.kind == MarkKind::part) {
      out.recording_since = mark.phase == kPartBegins ? std::optional(mark.step) : std::nullopt;
    } else if (mark.kind == MarkKind::step) {
      steps.push_back(&mark);
    } else if (mark.kind == MarkKind::phase && mark.phase < kMarkPhases) {
      std::int64_t& in_step = phases[mark.step][mark.phase];
      in_step = std::min(kMostNs, in_step + std::clamp<std::int64_t>(mark.dur_ns, 0, kMostNs));
    }
  }
  if (steps.empty()) return out;
  out.steps = steps.back()->step + 1;
  std::array<std::vector<std::int64_t>, kMarkPhases> of_phase;
  for (std::size_t i = steps.size() - std::min(steps.size(), window); i < steps.size(); i++) {
    out.step_ns.push_back(steps[i]->dur_ns);
    const auto& in_step = phases[steps[i]->step];
    std::int64_t outside = steps[i]->dur_ns;
    for (std::size_t phase = 1; phase < kMarkPhases; phase++) {
      of_phase[phase].push_back(in_step[phase]);
      outside -= in_step[phase];
    }
    of_phase[0].push_back(std::max<std::int64_t>(outside, 0));
  }
  for (std::size_t phase = 0; phase < kMarkPhases; phase++) out.phase_ns[phase] = median(of_phase[phase]);
  out.median_step_ns = median(out.step_ns);
  return out;
}

std::optional<std::size_t> slowest(const std::vector<RankProgress>& ranks) {
  constexpr unsigned kBackward = 3;
  std::vector<std::int64_t> own;
  for (const RankProgress& rank : ranks) {
    if (!rank.median_step_ns) return std::nullopt;
    own.push_back(*rank.median_step_ns - rank.phase_ns[kBackward]);
  }
  if (own.size() < 2) return std::nullopt;
  const auto most = std::max_element(own.begin(), own.end());
  std::vector<std::int64_t> others = own;
  others.erase(others.begin() + (most - own.begin()));
  const std::int64_t excess = *most - median(others);
  const auto index = static_cast<std::size_t>(most - own.begin());
  return excess * 10 > *ranks[index].median_step_ns ? std::optional(index) : std::nullopt;
}

}  // namespace stepscope::run
