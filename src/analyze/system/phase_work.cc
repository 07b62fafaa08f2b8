#include "analyze/system/phase_work.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "model/leaf_time.h"

namespace stepscope::analyze::telemetry {
namespace {

constexpr std::size_t kHeaviest = 8;  // of each phase
constexpr std::size_t kMostRanks = 64;

struct Key {
  std::uint8_t phase = 0;
  bool is_python = false;
  StringId name = StringId::none;
  auto operator<=>(const Key&) const = default;
};

using Times = std::map<Key, std::int64_t>;

// Steps bear numbers: what lies in them alone is one thing.
StringId shared_name(const Trace& trace, SliceId slice) {
  const StringId name = trace.slices.name[slice];
  return trace.strings[name].starts_with("ProfilerStep#") ? StringId::none : name;
}

void add_track(const Trace& trace, const LeafTime& track, Times& times) {
  for (std::size_t i = 0; i + 1 < track.pieces.size(); i++) {
    const Leaf& piece = track.pieces[i];
    if (piece.work == HostWork::nothing || trace.step_at(piece.start_ns) == StepId::none) continue;
    const Key key{trace.slices.phase[piece.slice], piece.work == HostWork::python, shared_name(trace, piece.slice)};
    times[key] += track.pieces[i + 1].start_ns - piece.start_ns;
  }
}

void take_heaviest(const Trace& trace, const Times& times, std::vector<PhaseWork>& out) {
  std::array<std::vector<PhaseWork>, kPhases> by_phase;
  std::array<std::int64_t, kPhases> phase_ns{};
  for (const auto& [key, ns] : times) {
    const std::string name(key.name == StringId::none ? "the step's own code" : trace.strings[key.name]);
    by_phase[key.phase].push_back({trace.rank.rank, static_cast<Phase>(key.phase), name, key.is_python, ns, 0});
    phase_ns[key.phase] += ns;
  }
  for (std::size_t phase = 0; phase < kPhases; phase++) {
    std::vector<PhaseWork>& all = by_phase[phase];
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.self_ns > b.self_ns; });
    all.resize(std::min(all.size(), kHeaviest));
    for (PhaseWork& one : all) {
      one.phase_ns = phase_ns[phase];
      out.push_back(std::move(one));
    }
  }
}

}  // namespace

std::vector<PhaseWork> phase_work(const Run& run) {
  std::vector<PhaseWork> out;
  for (const Trace& trace : run.traces) {
    if (trace.steps.empty() || &trace - run.traces.data() >= static_cast<std::ptrdiff_t>(kMostRanks)) continue;
    LeafTimes leaves(trace);
    Times times;
    for (std::size_t track = 0; track < trace.tracks.size(); track++) {
      if (!trace.tracks[track].device) add_track(trace, leaves.of(static_cast<TrackId>(track)), times);
    }
    take_heaviest(trace, times, out);
  }
  return out;
}

}  // namespace stepscope::analyze::telemetry
