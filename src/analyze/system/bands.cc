#include "analyze/system/bands.h"

#include <algorithm>

namespace stepscope::analyze::telemetry {
namespace {

constexpr std::size_t kMostBands = 4000;  // of steps, of all ranks: some 100 KB of a page
constexpr std::size_t kMostOfRank = 250;  // so that each has some pixels of a page's width

Interval time_of(const std::vector<RankSystem>& ranks, Interval sampled) {
  for (const RankSystem& rank : ranks) {
    if (rank.steps.end <= rank.steps.start) continue;
    sampled = {std::min(sampled.start, rank.steps.start), std::max(sampled.end, rank.steps.end)};
  }
  return sampled;
}

std::string label_of(const Step& step) { return step.number == kAbsent ? step.name : std::to_string(step.number); }

struct StepBands {
  std::vector<Band> bands;
  std::vector<Interval> of_one, of_several;  // those of one step, and of several, by start
};

// One band for each step; where they are narrower than `width`, for as many as fit into it.
StepBands step_bands(const std::vector<Step>& steps, std::int64_t width) {
  StepBands out;
  std::int64_t before = steps.front().start_ns;
  for (std::size_t first = 0, end = 0; first < steps.size(); first = end) {
    end = first + 1;
    while (end < steps.size() && steps[end].end_ns - steps[first].start_ns < width) end++;
    const Interval when{std::max(before, steps[first].start_ns), steps[end - 1].end_ns};
    if (when.end <= when.start) continue;
    before = when.end;
    const bool several = end - first > 1;
    (several ? out.of_several : out.of_one).push_back(when);
    const std::string label = label_of(steps[first]) + (several ? "–" + label_of(steps[end - 1]) : "");
    out.bands.push_back({when.start, when.end, label});
  }
  return out;
}

std::vector<Band> phase_bands(const RankSystem& rank, const StepBands& steps) {
  std::vector<Band> out;
  for (std::size_t phase = 0; phase < kPhases; phase++) {
    if (phase == static_cast<std::size_t>(Phase::other)) continue;
    const std::string name(to_string(static_cast<Phase>(phase)));
    for (const Interval& part : intersect(rank.phases[phase], steps.of_one))
      out.push_back({part.start, part.end, name});
    const std::vector<std::int64_t> lengths = lengths_in(rank.phases[phase], steps.of_several);
    for (std::size_t i = 0; i < lengths.size(); i++) {
      const Interval& when = steps.of_several[i];
      const double part = static_cast<double>(lengths[i]) / static_cast<double>(when.end - when.start);
      if (lengths[i] > 0) out.push_back({when.start, when.end, name, part});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Band& a, const Band& b) { return a.start_ns < b.start_ns; });
  return out;
}

}  // namespace

void add_bands(const std::vector<RankSystem>& ranks, Interval sampled, Answer& answer) {
  if (ranks.empty()) return;
  const std::size_t of_rank = std::clamp<std::size_t>(kMostBands / ranks.size(), 1, kMostOfRank);
  const Interval whole = time_of(ranks, sampled);
  for (const RankSystem& rank : ranks) {
    if (rank.history == nullptr || rank.history->steps.empty()) continue;
    const std::int64_t width = (whole.end - whole.start) / static_cast<std::int64_t>(of_rank);
    StepBands steps = step_bands(rank.history->steps, width);
    std::vector<Band> phases = phase_bands(rank, steps);
    if (!steps.bands.empty()) answer.bands.push_back({"steps", rank.rank, std::move(steps.bands)});
    if (!phases.empty()) answer.bands.push_back({"phases", rank.rank, std::move(phases)});
  }
}

}  // namespace stepscope::analyze::telemetry
