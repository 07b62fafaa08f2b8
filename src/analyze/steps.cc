// steps: how long each step took and what each of its instants was spent on.
//
// One row per rank and step; the parts add up to the wall time to the nanosecond (see model/step_parts.h). Cut steps
// are listed and marked, and left out of medians and means. The breakdown has both orders beside each other: priority
// (what ran) and critical (what bounded the step: model/critical_path.h), with the same parts.
#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/critical_path.h"
#include "model/step_parts.h"

namespace stepscope::analyze {
namespace {

struct RankSteps {
  const Trace* trace;
  std::vector<StepTimes> steps;
  std::vector<PartTimes> critical;  // of each step
};

std::vector<PartTimes> critical_parts(const Trace& trace) {
  std::vector<PartTimes> out;
  PathFinder(trace).each_step([&](std::size_t, const CriticalPath& path) {
    const PathTimes times = path.times();
    PartTimes& parts = out.emplace_back();
    for (std::size_t i = 0; i < kPathClasses; i++) {
      parts[static_cast<std::size_t>(step_part(static_cast<PathClass>(i)))] += times[i];
    }
  });
  return out;
}

std::string step_name(const Trace& trace, std::size_t step) {
  const Step& found = trace.steps[step];
  return found.name.empty() ? "step " + std::to_string(step) : found.name;
}

Table steps_table(const std::vector<RankSteps>& ranks) {
  Table table{
      .name = "steps",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"step", ValueType::text, Unit::none, "Name of the step as recorded"},
                  {"number", ValueType::integer, Unit::none, "Number of the step, where its name has one"},
                  {"partial", ValueType::boolean, Unit::none, "Cut by the edge of the recording"},
                  {"start_ns", ValueType::integer, Unit::ns, "Start of the wall time, on the clock of the file"},
                  {"wall_ns", ValueType::integer, Unit::ns,
                   "From the step's start, or the end of the step before if later, to the end of its host and "
                   "device work"},
                  {"host_ns", ValueType::integer, Unit::ns, "Length of the step's own mark on the host"}}};
  for (std::size_t part = 0; part < kStepParts; part++) {
    const auto which = static_cast<StepPart>(part);
    table.columns.push_back({std::string(to_string(which)) + "_ns", ValueType::integer, Unit::ns,
                             "Time of the step in which " + std::string(meaning_of(which))});
  }
  for (const RankSteps& rank : ranks) {
    for (const StepTimes& times : rank.steps) {
      const Step& step = rank.trace->steps[times.step];
      std::vector<Value> row{rank.trace->rank.rank,
                             step_name(*rank.trace, times.step),
                             step.number == kAbsent ? Value() : Value(step.number),
                             step.partial,
                             times.wall.start,
                             times.wall.end - times.wall.start,
                             step.end_ns - step.start_ns};
      row.insert(row.end(), times.parts.begin(), times.parts.end());
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table phases_table(const std::vector<RankSteps>& ranks) {
  Table table{
      .name = "phases",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"step", ValueType::text, Unit::none, "Name of the step as recorded"},
                  {"phase", ValueType::text, Unit::none, "Phase; other: in no phase that could be recognized"},
                  {"host_ns", ValueType::integer, Unit::ns,
                   "Wall time of the step in which a host thread was in this phase; each instant counts for the "
                   "most specific phase"},
                  {"device_ns", ValueType::integer, Unit::ns,
                   "Time of the step's wall in which device work launched in this phase ran"}}};
  for (const RankSteps& rank : ranks) {
    for (const StepTimes& times : rank.steps) {
      for (std::size_t phase = 0; phase < kPhases; phase++) {
        if (times.host_phases[phase] == 0 && times.device_phases[phase] == 0) continue;
        table.rows.push_back({rank.trace->rank.rank, step_name(*rank.trace, times.step),
                              std::string(to_string(static_cast<Phase>(phase))), times.host_phases[phase],
                              times.device_phases[phase]});
      }
    }
  }
  return table;
}

// Sums over the whole steps of all ranks; over all steps where none is whole.
struct Totals {
  PartTimes parts{}, critical{};
  std::int64_t wall_ns = 0;
  std::int64_t steps = 0;
};

Totals totals_of(const std::vector<RankSteps>& ranks) {
  Totals totals;
  for (const RankSteps& rank : ranks) {
    for (const StepTimes& times : rank.steps) {
      if (rank.trace->steps[times.step].partial) continue;
      for (std::size_t i = 0; i < kStepParts; i++) {
        totals.parts[i] += times.parts[i];
        totals.critical[i] += rank.critical[times.step][i];
      }
      totals.wall_ns += times.wall.end - times.wall.start;
      totals.steps++;
    }
  }
  return totals;
}

Table breakdown_table(const Totals& totals) {
  Table table{.name = "breakdown",
              .columns = {{"part", ValueType::text, Unit::none, "Part of the step, in order of priority"},
                          {"priority_ns", ValueType::integer, Unit::ns,
                           "Mean over the whole steps of all ranks; each instant goes to the first part that fits"},
                          {"priority_share", ValueType::real, Unit::ratio, "Share of the wall time of these steps"},
                          {"critical_ns", ValueType::integer, Unit::ns,
                           "Mean over the same steps in critical order: each instant goes to what bounded the step"},
                          {"critical_share", ValueType::real, Unit::ratio, "Share of the wall time of these steps"},
                          {"meaning", ValueType::text, Unit::none, "When an instant belongs to this part"}}};
  for (std::size_t i = 0; i < kStepParts && totals.steps > 0; i++) {
    const auto part = static_cast<StepPart>(i);
    table.rows.push_back({std::string(to_string(part)), totals.parts[i] / totals.steps,
                          share(totals.parts[i], totals.wall_ns), totals.critical[i] / totals.steps,
                          share(totals.critical[i], totals.wall_ns), std::string(meaning_of(part))});
  }
  return table;
}

void add_step_scalars(Answer& answer, const std::vector<RankSteps>& ranks) {
  std::vector<std::int64_t> walls;
  std::int64_t all = 0;
  for (const RankSteps& rank : ranks) {
    const auto whole = whole_walls(*rank.trace, rank.steps);
    walls.insert(walls.end(), whole.begin(), whole.end());
    all += static_cast<std::int64_t>(rank.steps.size());
  }
  std::sort(walls.begin(), walls.end());
  const bool known = !walls.empty();
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit, known ? meaning : kNoSteps);
  };
  add_scalar(answer, "step_count", all, Unit::count, "Steps found, of all ranks, cut ones included");
  add_scalar(answer, "whole_step_count", static_cast<std::int64_t>(walls.size()), Unit::count,
             "Steps that the edge of the recording does not cut; only these enter medians and means");
  scalar("step_time_median_ns", to_value(median(walls)), Unit::ns, "Median wall time of the whole steps of all ranks");
  scalar("step_time_min_ns", known ? Value(walls.front()) : Value(), Unit::ns, "Shortest whole step");
  scalar("step_time_max_ns", known ? Value(walls.back()) : Value(), Unit::ns, "Longest whole step");
  scalar("step_time_spread", step_spread(walls), Unit::ratio,
         walls.size() < 2 ? "Needs two whole steps"
                          : "Half the distance between the 10th and the 90th percentile of the step times, over the "
                            "median");
}

void add_series(Answer& answer, const std::vector<RankSteps>& ranks) {
  for (const RankSteps& rank : ranks) {
    Series series{.name = "step_time_rank" + std::to_string(rank.trace->rank.rank), .unit = Unit::ns};
    for (const StepTimes& times : rank.steps) {
      series.t_ns.push_back(times.wall.start);
      series.v.push_back(static_cast<double>(times.wall.end - times.wall.start));
    }
    if (!series.v.empty()) answer.series.push_back(std::move(series));
  }
}

void add_notes(Answer& answer, const std::vector<RankSteps>& ranks, bool device_work) {
  for (const RankSteps& rank : ranks) {
    if (!rank.trace->step_source.empty()) {
      answer.notes.push_back((ranks.size() > 1 ? "Rank " + std::to_string(rank.trace->rank.rank) + ": " : "") +
                             steps_note(rank.trace->step_source));
    }
  }
  if (!device_work) answer.notes.push_back(std::string(kNoDeviceWork));
  answer.notes.push_back(
      "In the breakdown, priority says what ran and critical says what bounded the step; the critical_path answer has "
      "the path itself.");
}

Result<Answer> run_steps(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<RankSteps> ranks;
  bool device_work = false;
  for (const Trace& trace : timelines(run)) {
    const RankTime time = rank_time(trace);
    device_work = device_work || !time.devices.empty();
    ranks.push_back({&trace, step_times(trace, time), critical_parts(trace)});
  }
  const Totals totals = totals_of(ranks);
  add_step_scalars(answer, ranks);
  answer.tables = {breakdown_table(totals), steps_table(ranks), phases_table(ranks)};
  limit_rows(answer, answer.tables[1], options.max_rows, "later steps");
  limit_rows(answer, answer.tables[2], options.max_rows, "phases of later steps");
  add_series(answer, ranks);
  add_notes(answer, ranks, device_work);
  return answer;
}

}  // namespace

Analysis steps_analysis() { return {"steps", "How long is a step, and what is its time spent on?", run_steps}; }

}  // namespace stepscope::analyze
