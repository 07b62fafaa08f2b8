// system: what the machine did beside the steps, from what was sampled of it (Run::telemetry): cores, memory, reads and
// writes of each rank, cut by phase and by step on the clock of the steps; and every series that was sampled, with the
// steps and phases to be drawn behind.
#include <algorithm>
#include <array>
#include <optional>

#include "analyze/analysis.h"
#include "analyze/system/bands.h"
#include "analyze/system/collectives.h"
#include "analyze/system/findings.h"
#include "analyze/system/phase_work.h"
#include "analyze/system/ranks.h"
#include "analyze/system/series.h"
#include "model/answer_parts.h"

namespace stepscope::analyze {

using namespace telemetry;

namespace {

constexpr std::string_view kNoTelemetry =
    "No telemetry lies beside this recording: `stepscope run` and `stepscope monitor` sample it into the run folder.";
constexpr std::size_t kMostSteps = 1000;  // rows of the table of steps

void add_measures(Table& table) {
  for (const Measure& measure : kMeasures) {
    table.columns.push_back({std::string(measure.column), ValueType::real, measure.unit, std::string(measure.meaning)});
  }
}

void add_amounts(Table& table) {
  for (const Amount& amount : kAmounts) {
    table.columns.push_back({std::string(amount.column), ValueType::real, amount.unit, std::string(amount.meaning)});
  }
}

Table ranks_table(const std::vector<RankSystem>& ranks) {
  Table table{.name = "ranks",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"measured_ns", ValueType::integer, Unit::ns, "Time that the figures are of: its steps"}},
              .rows = {}};
  add_measures(table);
  for (const RankSystem& rank : ranks) {
    const Interval when = measured_time(rank);
    std::vector<Value> row{rank.rank, value_if(when.end > when.start, when.end - when.start)};
    for (std::size_t m = 0; m < kMeasures.size(); m++) row.push_back(to_value(during(rank, m, when)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table phases_table(const std::vector<RankSystem>& ranks) {
  Table table{.name = "phases",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"phase", ValueType::text, Unit::none, "Phase of the step"},
                          {"share", ValueType::real, Unit::ratio, "Share of the time of all steps"}},
              .rows = {}};
  add_measures(table);
  for (const RankSystem& rank : ranks) {
    const std::int64_t all = rank.all_phases_ns();
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      if (rank.phase_ns[phase] == 0) continue;
      std::vector<Value> row{rank.rank, text(to_string(static_cast<Phase>(phase))), share(rank.phase_ns[phase], all)};
      for (const auto& cell : rank.by_phase[phase]) row.push_back(to_value(cell));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table phase_work_table(const std::vector<PhaseWork>& work) {
  Table table{.name = "phase_work",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"phase", ValueType::text, Unit::none, "Phase of the step"},
                          {"name", ValueType::text, Unit::none, "Innermost operator, or what stood around Python"},
                          {"kind", ValueType::text, Unit::none, "operator, or python: outside of any operator"},
                          {"self_ns", ValueType::integer, Unit::ns, "Time of the host in all recorded steps"},
                          {"phase_share", ValueType::real, Unit::ratio, "Share of what the host did in that phase"}},
              .rows = {}};
  for (const PhaseWork& one : work) {
    table.rows.push_back({one.rank, text(to_string(one.phase)), text(one.name),
                          text(one.is_python ? "python" : "operator"), one.self_ns, share(one.self_ns, one.phase_ns)});
  }
  return table;
}

// Phases that matter and are not told: the samples lie too far apart.
void tell_unknown_phases(const std::vector<RankSystem>& ranks, Answer& answer) {
  constexpr double kMatters = 0.1;  // of the steps
  const bool unknown = std::any_of(ranks.begin(), ranks.end(), [](const RankSystem& rank) {
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      const bool matters =
          static_cast<double>(rank.phase_ns[phase]) > kMatters * static_cast<double>(rank.all_phases_ns());
      if (matters && rank.series[kCores].about != nullptr && !rank.by_phase[phase][kCores]) return true;
    }
    return false;
  });
  if (!unknown) return;
  answer.notes.push_back(
      "What some phases used cannot be told: they are short against the time between two samples. "
      "Sample more often: --telemetry default,cpu:20ms");
}

// What a step and a training sample take on average.
Table per_step_table(const std::vector<RankSystem>& ranks) {
  Table table{
      .name = "per_step",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"samples", ValueType::real, Unit::count, "Samples of a step, as its data loader gives them"}},
      .rows = {}};
  add_amounts(table);
  table.columns.push_back({"gpu_joules_per_sample", ValueType::real, Unit::none, "Energy of its GPU in J"});
  table.columns.push_back({"host_joules_per_sample", ValueType::real, Unit::none,
                           "Energy of the processors of its machine in J, for each sample of this rank"});
  for (const RankSystem& rank : ranks) {
    std::array<std::optional<double>, kAmounts.size()> amounts;
    for (std::size_t a = 0; a < kAmounts.size(); a++) amounts[a] = per_step(rank, a);
    if (std::none_of(amounts.begin(), amounts.end(), [](const auto& one) { return one.has_value(); })) continue;
    std::vector<Value> row{rank.rank, to_value(rank.samples_per_step)};
    for (const auto& one : amounts) row.push_back(to_value(one));
    for (const std::size_t joules : {kGpuJoules, kHostJoules}) {
      const bool known = amounts[joules] && rank.samples_per_step;
      row.push_back(known ? Value(*amounts[joules] / *rank.samples_per_step) : Value());
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// The newest steps of each rank.
Table steps_table(const std::vector<RankSystem>& ranks, std::size_t& left_out) {
  Table table{.name = "steps",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"step", ValueType::integer, Unit::none, "Number of the step"},
                          {"start_ns", ValueType::integer, Unit::unix_ns, "When it began"},
                          {"wall_ns", ValueType::integer, Unit::ns, "How long it took"}},
              .rows = {}};
  add_measures(table);
  add_amounts(table);
  const std::size_t each = ranks.empty() ? 0 : std::max<std::size_t>(1, kMostSteps / ranks.size());
  for (const RankSystem& rank : ranks) {
    if (rank.history == nullptr) continue;
    const std::vector<Step>& steps = rank.history->steps;
    const std::size_t first = steps.size() - std::min(steps.size(), each);
    left_out += first;
    for (std::size_t i = first; i < steps.size(); i++) {
      const Interval when{steps[i].start_ns, steps[i].end_ns};
      std::vector<Value> row{rank.rank, present(steps[i].number), when.start, when.end - when.start};
      for (std::size_t m = 0; m < kMeasures.size(); m++) row.push_back(to_value(during(rank, m, when)));
      for (std::size_t a = 0; a < kAmounts.size(); a++) row.push_back(to_value(used(rank, a, when)));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Interval sampled_time(const std::vector<Sampled>& all) {
  if (all.empty()) return {};
  Interval out{all.front().samples.t_ns.front(), all.front().samples.t_ns.back()};
  for (const Sampled& one : all) {
    out = {std::min(out.start, one.samples.t_ns.front()), std::max(out.end, one.samples.t_ns.back())};
  }
  return out;
}

Result<Answer> run_system(const Run& run, const AnalyzeOptions& options) {
  Answer answer;
  const std::vector<Sampled> all = sampled_series(run);
  const bool known = !all.empty();
  const Interval sampled = sampled_time(all);
  add_scalar(answer, "series_count", known ? count(all.size()) : Value(), Unit::count,
             known ? "Series that were sampled" : kNoTelemetry);
  add_scalar(answer, "sampled_ns", value_if(known, sampled.end - sampled.start), Unit::ns,
             known ? "From the first sample to the last" : kNoTelemetry);
  const std::vector<RankSystem> ranks = ranks_of(run);
  std::size_t left_out = 0;
  const std::vector<PhaseWork> work = known ? phase_work(run) : std::vector<PhaseWork>();
  answer.tables = {ranks_table(ranks), phases_table(ranks), phase_work_table(work), per_step_table(ranks),
                   collectives_table(run, ranks, answer)};
  add_series(all, ranks, answer);
  add_bands(ranks, sampled, answer);
  answer.tables.push_back(steps_table(ranks, left_out));
  tell_unknown_phases(ranks, answer);
  if (left_out > 0) {
    answer.notes.push_back("Table steps has the newest steps of each rank; " + std::to_string(left_out) +
                           " older ones are left out.");
  }
  find_causes(ranks, work, answer);
  for (Table& table : answer.tables) {
    const std::string rest = "later rows of " + table.name;
    limit_rows(answer, table, options.max_rows, rest);
  }
  if (!known) answer.notes.push_back(std::string(kNoTelemetry));
  return answer;
}

}  // namespace

Analysis system_analysis() { return {"system", "What did the machine do beside the steps?", run_system}; }

}  // namespace stepscope::analyze
