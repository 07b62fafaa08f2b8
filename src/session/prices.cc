#include "session/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/shell_word.h"
#include "model/answer_parts.h"
#include "model/finding_order.h"
#include "model/windows.h"
#include "session/changes.h"
#include "simulate/predict.h"
#include "simulate/replay_graph.h"

namespace stepscope::session {
namespace {

using simulate::Prediction;
using simulate::Predictor;

std::string how(const std::vector<Change>& changes) {
  std::string text = "stepscope what-if PATH";
  for (const Change& change : changes) {
    const std::string words = change_text(change);
    const std::size_t space = words.find(' ');
    text += " --" + words.substr(0, space);
    if (space == std::string::npos) continue;
    const std::string value = words.substr(space + 1);
    text += " " + shell_word(value);
  }
  return text;
}

// Of the path that bounds the steps, before over after, when communication takes none of it; nullopt: not playable.
std::optional<double> without_communication(const Predictor& predictor) {
  const Result<Prediction> now = predictor.predict({});
  if (!now) return std::nullopt;
  std::int64_t all_ns = 0, left_ns = 0;
  for (const simulate::PathPiece& piece : predictor.path_of(*now)) {
    const simulate::NodeRole role = predictor.graph().role[piece.node];
    const std::int64_t time_ns = piece.until_ns - piece.from_ns;
    all_ns += time_ns;
    if (role != simulate::NodeRole::communicate && role != simulate::NodeRole::arrival) left_ns += time_ns;
  }
  return static_cast<double>(all_ns) / static_cast<double>(std::max<std::int64_t>(left_ns, 1));
}

// What waits for no communication comes earlier by as much as it had waited; played, it may come before what nothing in
// the recording shows that it needs. A finding is worth no more than the time that it has of the path.
Result<Prediction> predict_fix(const Predictor& predictor, const std::vector<Change>& changes) {
  Result<Prediction> made = predictor.predict(changes);
  const bool overlaps = std::any_of(changes.begin(), changes.end(),
                                    [](const Change& change) { return change.kind == ChangeKind::overlap; });
  if (!made || !overlaps) return made;
  if (const auto most = without_communication(predictor)) {
    made->speedup_low = std::min(made->speedup_low, *most);
    made->speedup_high = std::min(made->speedup_high, *most);
  }
  return made;
}

// The step where nobody records, as advice knows it; nullopt: it is not known.
std::optional<std::int64_t> unrecorded_step(const Report& report) {
  const Answer* advice = report.answer(kAdvice);
  if (advice == nullptr || advice->whole("recording_ns").value_or(0) <= 0) return std::nullopt;
  return advice->whole("step_ns");
}

bool is_on_host(const Change& change) { return change.target.starts_with("host:"); }

// What is played are the recorded steps. Recording costs their host, so that as much of a gain on the host as only
// makes them as short as the others is none.
double beside_usual(double speedup, std::int64_t recorded_ns, std::int64_t usual_ns) {
  const double after = static_cast<double>(recorded_ns) / speedup;
  return recorded_ns <= usual_ns ? speedup : std::max(1.0, static_cast<double>(usual_ns) / after);
}

void compare_with_usual(Finding& finding, std::int64_t usual_ns) {
  constexpr double kWorthSaying = 1.01;
  if (!finding.gain || finding.gain->step_ns <= usual_ns) return;
  if (std::none_of(finding.changes.begin(), finding.changes.end(), is_on_host)) return;
  const std::int64_t recorded_ns = finding.gain->step_ns;
  for (double* speedup : {&finding.gain->speedup_low, &finding.gain->speedup_high}) {
    *speedup = beside_usual(*speedup, recorded_ns, usual_ns);
  }
  finding.gain->step_ns = usual_ns;
  finding.gain->how += ", beside the job's other steps";
  if (finding.gain->speedup_high >= kWorthSaying) return;
  finding.gain.reset();
  finding.gain_reason = fmt::format(
      "Not predicted: the recorded steps, {:.1f} ms each, would be about as short as the job's others are already, "
      "{:.1f} ms.",
      static_cast<double>(recorded_ns) / 1e6, static_cast<double>(usual_ns) / 1e6);
}

void add_joint(Report& report, const Predictor& predictor, const std::vector<Change>& all,
               std::optional<std::int64_t> usual_ns) {
  const auto overview = std::find_if(report.answers.begin(), report.answers.end(),
                                     [](const Answer& answer) { return answer.name == "overview"; });
  if (overview == report.answers.end()) return;
  Result<Prediction> made = predictor.predict(all);
  if (made && usual_ns && std::any_of(all.begin(), all.end(), is_on_host)) {
    for (double* speedup : {&made->speedup_low, &made->speedup_high})
      *speedup = beside_usual(*speedup, made->now_ns, *usual_ns);
  }
  const std::string meaning =
      made ? "Steps with every finding fixed that could be priced, before over after; then bound by " + made->binds
           : "Not predicted: " + made.error().message;
  add_scalar(*overview, "speedup_of_all_low", made ? Value(made->speedup_low) : Value(), Unit::none, meaning);
  add_scalar(*overview, "speedup_of_all_high", made ? Value(made->speedup_high) : Value(), Unit::none, meaning);
}

}  // namespace

void price_findings(Player& player, Report& report) {
  std::vector<Finding*> priced;
  std::vector<Change> all;
  for (Answer& answer : report.answers) {
    for (Finding& finding : answer.findings) {
      if (finding.changes.empty()) continue;
      priced.push_back(&finding);
      for (const Change& change : finding.changes) {
        if (std::find(all.begin(), all.end(), change) == all.end()) all.push_back(change);
      }
    }
  }
  if (priced.empty() || timelines(player.run()).empty()) return;
  if (player.is_large()) {
    for (Finding* finding : priced) {
      finding->gain_reason =
          fmt::format("Not predicted in a report of {} slices; {} does it.", player.slices(), how(finding->changes));
    }
    return;
  }
  const Predictor& predictor = player.predictor();
  const std::optional<std::int64_t> usual_ns = unrecorded_step(report);
  for (Finding* finding : priced) {
    simulate::give_gain(*finding, predict_fix(predictor, finding->changes), how(finding->changes));
    if (usual_ns) compare_with_usual(*finding, *usual_ns);
  }
  const auto gains =
      std::count_if(priced.begin(), priced.end(), [](const Finding* one) { return one->gain.has_value(); });
  if (gains > 1) add_joint(report, predictor, all, usual_ns);
}

namespace {

int doubt(const Finding& finding) {
  const std::string confidence = finding.confidence.value_or("");
  return confidence == "high" ? 0 : confidence == "medium" ? 1 : 2;
}

// Per answer and finding: the step to be expected. Advice has its findings in order, where a general remedy may stand
// behind what says more of the same time: then it comes as late as that does.
std::vector<std::vector<double>> steps_to_order_by(const Report& report) {
  std::vector<std::vector<double>> out;
  for (const Answer& answer : report.answers) {
    std::vector<double>& steps = out.emplace_back();
    for (const Finding& finding : answer.findings) steps.push_back(expected_step(finding));
    if (answer.name != kAdvice) continue;
    for (std::size_t i = 1; i < steps.size(); i++) steps[i] = std::max(steps[i - 1], steps[i]);
  }
  return out;
}

}  // namespace

void put_by_worth(Report& report) {
  report.by_worth.clear();
  for (std::uint32_t a = 0; a < report.answers.size(); a++) {
    for (std::uint32_t f = 0; f < report.answers[a].findings.size(); f++) report.by_worth.push_back({a, f});
  }
  const std::vector<std::vector<double>> steps = steps_to_order_by(report);
  std::stable_sort(report.by_worth.begin(), report.by_worth.end(), [&](const auto& one, const auto& other) {
    const Finding &a = report.finding(one), &b = report.finding(other);
    const bool a_repeats = repeats_advice(report, one), b_repeats = repeats_advice(report, other);
    if (a_repeats != b_repeats) return b_repeats;
    const double a_step = steps[one.answer][one.finding], b_step = steps[other.answer][other.finding];
    if (a_step != b_step) return a_step < b_step;
    if (a_step < 1 && one.answer == other.answer && report.answers[one.answer].name == kAdvice)
      return one.finding < other.finding;
    // Of what has none: faults that the steps show, offers as advice has them in order, what other answers say.
    const auto kind = [&](const auto& at, const Finding& finding) {
      return is_offer(finding) ? 1 : report.answers[at.answer].name == kAdvice ? 0 : 2;
    };
    if (kind(one, a) != kind(other, b)) return kind(one, a) < kind(other, b);
    return !is_offer(a) && doubt(a) < doubt(b);
  });
}

}  // namespace stepscope::session
