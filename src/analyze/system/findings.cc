#include "analyze/system/findings.h"

#include "model/answer_parts.h"

namespace stepscope::analyze::telemetry {
namespace {

constexpr double kStarved = 0.1;     // of its time without a core, though it could run: worth a finding
constexpr double kOneCore = 0.85;    // of one core: the main thread is what the phase waits for
constexpr double kMuchOfStep = 0.3;  // share of the steps that a phase must have to be named

// The main thread could have run and had no core: more work than cores, or pinned to one that others use.
void find_starved(const std::vector<RankSystem>& ranks, Answer& answer) {
  const RankSystem* worst = nullptr;
  double most = kStarved;
  for (const RankSystem& rank : ranks) {
    const auto wait = during(rank, kMainThreadWait, measured_time(rank));
    if (wait && *wait >= most) most = *wait, worst = &rank;
  }
  if (worst == nullptr) return;
  Finding finding{
      .id = "no_core",
      .cause = "cpu",
      .sentence = "The main thread waits for a core: more runs on this machine than it has cores for",
      .where = {.rank = worst->rank},
      .evidence = {{.text = "Of its time it could have run and had none", .value = most, .unit = Unit::ratio}},
      .gain_reason = std::string(kNoGain),
      .confidence = "high",
      .next = "Let fewer threads work at once (OMP_NUM_THREADS), or give the rank cores of its own"};
  if (const auto cores = during(*worst, kCores, measured_time(*worst))) {
    finding.evidence.push_back({.text = "Cores that the rank used", .value = *cores, .unit = Unit::none});
  }
  answer.findings.push_back(std::move(finding));
}

// "Python: Rarest 88 %" of what the host did there, as evidence: the two heaviest.
void add_work(const std::vector<PhaseWork>& work, std::int64_t rank, std::size_t phase, Finding& finding) {
  constexpr std::size_t kNamed = 2;
  std::size_t named = 0;
  for (const PhaseWork& one : work) {
    if (one.rank != rank || static_cast<std::size_t>(one.phase) != phase || named++ >= kNamed) continue;
    finding.evidence.push_back({.text = (one.is_python ? "Python: " : "") + one.name,
                                .value = static_cast<double>(one.self_ns) / static_cast<double>(one.phase_ns),
                                .unit = Unit::ratio});
  }
}

// A phase that is long, and in which the main thread is busy all the time while hardly anything else is.
void find_one_core(const std::vector<RankSystem>& ranks, const std::vector<PhaseWork>& work, Answer& answer) {
  const RankSystem* where = nullptr;
  std::size_t phase_of = 0;
  double longest = kMuchOfStep;
  for (const RankSystem& rank : ranks) {
    const std::int64_t all = rank.all_phases_ns();
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      const auto& main = rank.by_phase[phase][kMainThread];
      const auto& cores = rank.by_phase[phase][kCores];
      if (all == 0 || !main || !cores || *cores > *main + 0.3) continue;
      // What a noisy neighbour keeps from it counts as its own: it would have worked.
      if (*main + rank.by_phase[phase][kMainThreadWait].value_or(0) < kOneCore) continue;
      const double part = static_cast<double>(rank.phase_ns[phase]) / static_cast<double>(all);
      if (part >= longest) longest = part, where = &rank, phase_of = phase;
    }
  }
  if (where == nullptr) return;
  const std::string phase(to_string(static_cast<Phase>(phase_of)));
  const Cells& measured = where->by_phase[phase_of];
  const bool has_idle =
      measured[kHostIdle].value_or(1) >= kIdleCore && measured[kMainThreadWait].value_or(0) < kStarved;
  Finding finding{.id = "one_core_phase",
                  .cause = "cpu",
                  .sentence = "One core alone works " + (phase == "other" ? "outside of the phases" : "in " + phase) +
                              ": the main thread is busy, and nothing of the rank beside it",
                  .where = {.rank = where->rank, .phase = phase},
                  .evidence = {{.text = "Of one core, by the main thread there",
                                .value = *measured[kMainThread],
                                .unit = Unit::ratio},
                               {.text = "Of the time of all steps", .value = longest, .unit = Unit::ratio}},
                  .gain_reason = std::string(kNoGain),
                  .confidence = "medium",
                  .next =
                      "See which functions run there: stepscope report --only stacks,operators; move them to the "
                      "device" +
                      std::string(has_idle ? ", to workers of the data loader, or to more threads (OMP_NUM_THREADS)"
                                           : ": the machine has no idle core for them")};
  if (measured[kHostIdle]) {
    finding.evidence.push_back({.text = "Idle cores of its machine there", .value = *measured[kHostIdle]});
  }
  add_work(work, where->rank, phase_of, finding);
  answer.findings.push_back(std::move(finding));
}

}  // namespace

void find_causes(const std::vector<RankSystem>& ranks, const std::vector<PhaseWork>& work, Answer& answer) {
  find_starved(ranks, answer);
  find_one_core(ranks, work, answer);
}

}  // namespace stepscope::analyze::telemetry
