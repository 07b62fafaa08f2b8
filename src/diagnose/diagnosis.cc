#include "diagnose/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/missing.h"
#include "model/answer_parts.h"
#include "model/closures.h"
#include "model/finding_order.h"

namespace stepscope::diagnose {
namespace {

using simulate::NodeRole;
using simulate::Prediction;

struct Priced {
  Diagnosis diagnosis;
  std::string id;
  std::vector<bool> explains;  // per node
  std::int64_t time_ns = 0;    // on the path
  double offered_step = 1;     // of an offer: expected_step() if it were taken
};

// Until when steps of optimizers only call the passes, by their ranges.
using ClosureEnds = std::map<SliceId, std::int64_t>;

ClosureEnds closure_ends(const Trace& trace) {
  ClosureEnds ends;
  const auto phase = [&](SliceId id) { return static_cast<Phase>(trace.slices.phase[id]); };
  for (const Closure& one : closures(trace, phase)) ends.emplace(one.optimizer, one.end_ns);
  return ends;
}

// Stretches of the steps that a finding explains.
std::string partition_of(std::string_view id) { return "select * from advice_partition where " + is_explained_by(id); }

std::string part_of(const Work& work, std::uint32_t row, bool handed_over) {
  if (work.role == NodeRole::communicate || work.role == NodeRole::arrival) return std::string(part::kCommunication);
  if (work.device) {
    if (handed_over) return std::string(part::kToDevice);
    return std::string(to_string(static_cast<DeviceClass>(work.trace->device.device_class[row]))) + " on the device";
  }
  if (handed_over) return std::string(part::kWait);
  if (work.role == NodeRole::data_loader) return std::string(part::kDataLoader);
  if (work.role == NodeRole::launch) return std::string(part::kLaunches);
  return std::string(work.operation == SliceId::none ? part::kBetweenOperators : part::kOperators);
}

// No fix takes more than the time that it explains. Played it may: a thread that does not wait comes earlier by as much
// as it had waited, and may come before what nothing in the recording shows that it needs.
void limit_to_explained(const Case& about, std::int64_t explained_ns, Prediction& made) {
  const std::int64_t left_ns = std::max<std::int64_t>(about.path_ns - explained_ns, 1);
  const double most = static_cast<double>(about.path_ns) / static_cast<double>(left_ns);
  made.speedup_low = std::min(made.speedup_low, most);
  made.speedup_high = std::min(made.speedup_high, most);
}

// What is left of a step on the host does not take as long as it took. `often`: in how many of the steps there is what
// goes, 0 to 1; the others run without it already.
void allow_for_rest(const Case& about, bool rest_stays, double often, Prediction& made) {
  // What a device does is in no cache of the host; and a range that begins at nothing is wide already.
  if (about.has_device() || made.speedup_low <= 1) return;
  if (!rest_stays) {
    const double gone = 1 - 1 / made.speedup_high, gone_where_it_is = gone / (gone + often * (1 - gone));
    made.speedup_high /= 1 - often * (1 - rest_at_best(about, gone_where_it_is));
  }
  // What is to be expected is the middle of what may be left of the step; the range is told around its speedup, of
  // which the far end says less than of the step.
  const double expected = 2 / (1 / made.speedup_low + 1 / made.speedup_high);
  made.speedup_high = 2 * expected - made.speedup_low;
}

// What it would give is evidence and no gain: it competes with no fault for the time of the steps.
void make_offer(Priced& one) {
  Finding& finding = one.diagnosis.finding;
  one.explains.assign(one.explains.size(), false);
  for (Evidence& of : finding.evidence) {
    if (of.query && of.query->find("advice_partition") != std::string::npos) of.query.reset();  // no stretch is its
  }
  if (!finding.gain) return;
  for (const auto& [text, value] : {std::pair("Speedup if done, at least", finding.gain->speedup_low),
                                    std::pair("at most", finding.gain->speedup_high)}) {
    finding.evidence.push_back({.text = text, .value = value});
  }
  one.offered_step = expected_step(finding);
  finding.gain.reset();
  finding.gain_reason = std::string(kOffer);
}

// The step that has a piece of the path, on the rank whose piece it is.
StepId step_of(const Case& about, std::uint32_t node) {
  const Work work = about.work(node);
  return work.device ? work.trace->device.step[about.predictor.graph().row[node]] : work.trace->step_at(work.start_ns);
}

// The steps that have, on the path, what is explained, and how much of it. Of what is known by marks alone none has.
std::map<StepId, std::int64_t> steps_with(const Case& about, const Priced& one) {
  std::map<StepId, std::int64_t> seen;
  for (const std::uint32_t node : about.path_nodes()) {
    if (one.explains[node]) seen[step_of(about, node)] += about.on_path(node);
  }
  seen.erase(StepId::none);
  return seen;
}

// All of these are of a kind that comes less often than it was recorded.
bool are_rare(const Case& about, const std::map<StepId, std::int64_t>& steps) {
  const std::vector<StepId>& rare = about.long_steps;
  return std::all_of(steps.begin(), steps.end(),
                     [&](const auto& step) { return std::find(rare.begin(), rare.end(), step.first) != rare.end(); });
}

// In how many of the steps there is a good part of it, 0 to 1; 0: in next to none.
double how_often(const Case& about, const Priced& one) {
  constexpr double kGoodPart = 0.1;  // of what the step has that has most
  const std::map<StepId, std::int64_t> seen = steps_with(about, one);
  if (!about.now.window.whole_steps || seen.empty() || one.diagnosis.is_by_marks) return 1;
  if (are_rare(about, seen)) return 0;
  std::int64_t most_ns = 0;
  for (const auto& [step, ns] : seen) most_ns = std::max(most_ns, ns);
  const auto count = std::count_if(seen.begin(), seen.end(), [&](const auto& step) {
    return static_cast<double>(step.second) >= kGoodPart * static_cast<double>(most_ns);
  });
  return std::min(1.0, static_cast<double>(count) / static_cast<double>(about.steps));
}

Priced priced(const Case& about, std::string_view id, Diagnosis diagnosis) {
  Priced out{
      .diagnosis = std::move(diagnosis), .id = std::string(id), .explains = std::vector<bool>(about.size(), false)};
  Finding& finding = out.diagnosis.finding;
  if (finding.id.empty()) finding.id = out.id;  // else it speaks for another cause
  out.id = finding.id;
  Result<Prediction> made = about.predict(out.diagnosis.rewrite);
  for (const simulate::Rewrite::Node& one : out.diagnosis.rewrite.nodes) {
    if (one.least_ns < about.cost_ns(one.node)) out.explains[one.node] = true;
  }
  for (const std::uint32_t node : out.diagnosis.explains) out.explains[node] = true;
  for (const std::uint32_t node : about.path_nodes()) {
    if (out.explains[node]) out.time_ns += about.on_path(node);
  }
  for (Evidence& one : finding.evidence) {
    if (one.text == "Of the steps" && !one.query) {
      one.query = partition_of(out.id);
    }
  }
  if (made) {
    limit_to_explained(about, out.time_ns, *made);
    allow_for_rest(about, out.diagnosis.rest_stays, how_often(about, out), *made);
  }
  simulate::give_gain(finding, made, "played again without it");
  if (out.diagnosis.known_gain) finding.gain = out.diagnosis.known_gain, finding.gain_reason.clear();
  if (!out.diagnosis.no_gain.empty()) finding.gain.reset(), finding.gain_reason = out.diagnosis.no_gain;
  if (out.diagnosis.is_offer) make_offer(out);
  return out;
}

// How often it was seen, with its place or without, before what the cause itself has doubts about.
void say_how_sure(const Case& about, Priced& one) {
  Finding& finding = one.diagnosis.finding;
  if (!finding.confidence) return;
  const std::map<StepId, std::int64_t> seen = steps_with(about, one);
  std::string reason;
  if (!about.now.window.whole_steps) {
    reason = "seen in a recording without steps";
  } else if (!seen.empty()) {
    const auto in = static_cast<std::int64_t>(seen.size());
    reason = in >= about.steps
                 ? about.steps == 1 ? "seen in the one step recorded" : fmt::format("seen in all {} steps", about.steps)
                 : fmt::format("seen in {} of {} steps: the gain {}", in, about.steps,
                               are_rare(about, seen) ? "counts it as often as steps come that take so long"
                                                     : "supposes that it is as often in the others");
  }
  const auto add = [&](std::string_view more) { reason += (reason.empty() ? "" : "; ") + std::string(more); };
  if (about.places.known(about.trace)) add(finding.where.line ? "its line is known" : "its line is not known");
  if (!finding.confidence_reason.empty()) add(finding.confidence_reason);
  finding.confidence_reason = std::move(reason);
}

// Each instant of the steps in one row.
Table partition_table(const Case& about, const std::vector<Priced>& all) {
  Table table{.name = "partition",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank whose time it is"},
                          {"part", ValueType::text, Unit::none, "What bounds the steps there"},
                          {"phase", ValueType::text, Unit::none, "Phase of the step"},
                          {"finding", ValueType::text, Unit::none,
                           "The finding worth most that explains it; unknown: none does"},
                          {"time_ns", ValueType::integer, Unit::ns, "Time per step"},
                          {"share", ValueType::real, Unit::ratio, "Share of the steps"},
                          {"explained_by", ValueType::text, Unit::none,
                           "All findings that explain it, that worth most first, with blanks between; unknown: none"}}};
  std::map<std::tuple<std::int64_t, std::string, std::string, std::string>, std::int64_t> parts;
  std::map<const Trace*, ClosureEnds> ends_of;
  for (const simulate::PathPiece& piece : about.path) {
    const Work work = about.work(piece.node);
    std::uint8_t phase = 0;
    if (work.device) {
      phase = work.trace->device.phase[about.predictor.graph().row[piece.node]];
    } else if (work.slice != SliceId::none) {
      phase = work.trace->slices.phase[work.slice];
      // The range around code between operators may be that of an optimizer which calls the passes.
      if (static_cast<Phase>(phase) == Phase::optimizer && work.operation == SliceId::none) {
        const auto [of, is_new] = ends_of.try_emplace(work.trace);
        if (is_new) of->second = closure_ends(*work.trace);
        const auto end = of->second.find(work.slice);
        if (end != of->second.end() && work.start_ns < end->second) phase = static_cast<std::uint8_t>(Phase::other);
      }
    }
    std::string explained_by;
    for (const Priced& one : all) {
      if (one.explains[piece.node]) explained_by += (explained_by.empty() ? "" : " ") + one.id;
    }
    parts[{work.trace->rank.rank, part_of(work, about.predictor.graph().row[piece.node], piece.handed_over),
           std::string(to_string(static_cast<Phase>(phase))), std::move(explained_by)}] +=
        piece.until_ns - piece.from_ns;
  }
  std::vector<std::pair<std::tuple<std::int64_t, std::string, std::string, std::string>, std::int64_t>> sorted(
      parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [key, ns] : sorted) {
    const auto& [rank, name, phase, explained_by] = key;
    const std::string_view first = std::string_view(explained_by).substr(0, explained_by.find(' '));
    table.rows.push_back(
        {rank, name, phase, text(first), ns / about.steps, share(ns, about.path_ns), text(explained_by)});
  }
  return table;
}

// Findings that explain the same time: fixing both is worth less than the sum of their gains.
void say_what_is_shared(const Case& about, std::vector<Priced>& all) {
  for (std::size_t b = 1; b < all.size(); b++) {
    for (std::size_t a = 0; a < b; a++) {
      std::int64_t both = 0;
      for (const std::uint32_t node : about.path_nodes()) {
        if (all[a].explains[node] && all[b].explains[node]) both += about.on_path(node);
      }
      const std::int64_t smaller = std::min(all[a].time_ns, all[b].time_ns);
      if (smaller == 0 || static_cast<double>(both) < kShared * static_cast<double>(smaller)) continue;
      all[b].diagnosis.finding.evidence.push_back({.text = "Of this also explained by " + all[a].id,
                                                   .value = share(both, all[b].time_ns),
                                                   .unit = Unit::ratio,
                                                   .query = partition_of(all[b].id)});
    }
  }
}

}  // namespace

namespace {

// Is what that one takes off the steps much of what the general remedy does at least, and to a good part the same time?
bool is_much_of(const Case& about, const Priced& one, const Priced& general) {
  constexpr double kMuch = 0.4, kGoodPart = 0.3;
  const auto gone = [](double speedup) { return 1 - 1 / speedup; };
  const Finding &own = one.diagnosis.finding, &all = general.diagnosis.finding;
  if (!own.gain || !all.gain || one.diagnosis.is_offer || one.diagnosis.is_general || one.time_ns <= 0) return false;
  std::int64_t both_ns = 0;
  for (const std::uint32_t node : about.path_nodes()) {
    if (one.explains[node] && general.explains[node]) both_ns += about.on_path(node);
  }
  return 1 - expected_step(own) >= kMuch * gone(all.gain->speedup_low) &&
         static_cast<double>(both_ns) >= kGoodPart * static_cast<double>(one.time_ns);
}

// Those worth most first, but a general remedy right behind what says more of the same time: a loop with its line, an
// optimizer with its option. What it is worth is not changed.
void put_in_order(const Case& about, std::vector<Priced>& all) {
  const auto order = [](const Priced& one) {
    return std::tuple(expected_step(one.diagnosis.finding), one.diagnosis.is_offer, one.offered_step);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Priced& a, const Priced& b) { return order(a) < order(b); });
  for (std::size_t i = 0; i < all.size(); i++) {
    if (!all[i].diagnosis.is_general) continue;
    const auto before = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                                     [&](const Priced& one) { return is_much_of(about, one, all[i]); });
    if (before == all.end()) return;
    std::rotate(all.begin() + static_cast<std::ptrdiff_t>(i), all.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                before + 1);
    return;
  }
}

}  // namespace

std::string is_explained_by(std::string_view id) { return fmt::format("' ' || explained_by || ' ' like '% {} %'", id); }

Result<Answer> advice(const Run& run, const simulate::Predictor& predictor) {
  const Result<Case> made = Case::of(run, predictor);
  if (!made) return fail(made.error());
  const Case& about = *made;
  std::vector<Priced> all;
  for (const Cause& cause : causes::causes()) {
    std::vector<Diagnosis> found;
    cause.find(about, found);
    for (Diagnosis& one : found) all.push_back(priced(about, cause.id, std::move(one)));
  }
  put_in_order(about, all);
  say_what_is_shared(about, all);
  for (Priced& one : all) say_how_sure(about, one);

  Answer answer;
  std::int64_t explained = 0;
  for (const std::uint32_t node : about.path_nodes()) {
    if (std::any_of(all.begin(), all.end(), [&](const Priced& one) { return one.explains[node]; })) {
      explained += about.on_path(node);
    }
  }
  add_scalar(answer, "step_ns", about.now.after_ns[1], Unit::ns,
             "Mean step of the rank that takes longest, without what recording it cost");
  add_scalar(
      answer, "recording_ns", about.recording_ns, Unit::ns,
      "What its recorded steps take beyond the usual ones, mostly for being recorded; 0 where only these are known");
  add_scalar(answer, "bound_by", about.now.binds, Unit::none, "What is longest on the path that bounds the steps");
  add_scalar(answer, "bound_share", about.now.binds_share, Unit::ratio, "Its share of that path");
  add_scalar(answer, "explained_share", share(explained, about.path_ns), Unit::ratio,
             "Share of the steps that some finding here explains");
  answer.tables.push_back(partition_table(about, all));
  for (Priced& one : all) answer.findings.push_back(std::move(one.diagnosis.finding));
  answer.notes = missing(about);
  return answer;
}

}  // namespace stepscope::diagnose
