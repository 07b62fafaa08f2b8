#include "analyze/system/bands.h"

#include <algorithm>

namespace stepscope::analyze::telemetry {
namespace {

constexpr std::size_t kMostBands = 4000;  // of steps, of all ranks: some 100 KB of a page
constexpr std::size_t kMostOfRank = 250;  // so that each has some pixels of a page's width
constexpr std::size_t kMostPieces = 16;   // of the phases of a step, which may have hundreds of micro-batches

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

// Steps of so many pieces show how long each phase took, as several steps do.
void fold_busy_steps(const RankSystem& rank, StepBands& steps) {
  std::vector<std::size_t> pieces(steps.of_one.size(), 0);
  for (const Intervals& phase : rank.phases) {
    std::size_t at = 0;
    for (const Interval& piece : intersect(phase, steps.of_one)) {
      while (steps.of_one[at].end <= piece.start) at++;
      pieces[at]++;
    }
  }
  std::vector<Interval> few;
  for (std::size_t i = 0; i < pieces.size(); i++) {
    (pieces[i] > kMostPieces ? steps.of_several : few).push_back(steps.of_one[i]);
  }
  steps.of_one = std::move(few);
  std::sort(steps.of_several.begin(), steps.of_several.end(),
            [](const Interval& a, const Interval& b) { return a.start < b.start; });
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

// Of many ranks the last have no series on the page.
bool is_drawn(const RankSystem& rank, const Answer& answer) {
  return std::any_of(answer.series.begin(), answer.series.end(), [&](const Series& series) {
    return std::find(series.ranks.begin(), series.ranks.end(), rank.rank) != series.ranks.end();
  });
}

}  // namespace

void add_bands(const std::vector<RankSystem>& ranks, Interval sampled, Answer& answer) {
  if (ranks.empty()) return;
  const std::size_t of_rank = std::clamp<std::size_t>(kMostBands / ranks.size(), 1, kMostOfRank);
  const Interval whole = time_of(ranks, sampled);
  for (const RankSystem& rank : ranks) {
    if (rank.history == nullptr || rank.history->steps.empty() || !is_drawn(rank, answer)) continue;
    const std::int64_t width = (whole.end - whole.start) / static_cast<std::int64_t>(of_rank);
    StepBands steps = step_bands(rank.history->steps, width);
    fold_busy_steps(rank, steps);
    std::vector<Band> phases = phase_bands(rank, steps);
    if (!steps.bands.empty()) answer.bands.push_back({"steps", rank.rank, std::move(steps.bands)});
    if (!phases.empty()) answer.bands.push_back({"phases", rank.rank, std::move(phases)});
  }
}

}  // namespace stepscope::analyze::telemetry
