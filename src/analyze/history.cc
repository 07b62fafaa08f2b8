// history: all steps of the job, not only the recorded ones, from the marks that each rank keeps (Run::history): does a
// step cost more as time goes on, which steps stand out, and are the recorded steps like the others?
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "analyze/analysis.h"
#include "model/answer_parts.h"

namespace stepscope::analyze {
namespace {

constexpr std::string_view kNoMarks =
    "No marks of the job's steps lie beside this recording: `stepscope run` keeps them in the run folder's telemetry.";
constexpr std::array kMarkedPhases{Phase::dataloader, Phase::forward, Phase::backward, Phase::optimizer};
constexpr std::size_t kSlowest = 20;       // steps listed
constexpr std::size_t kFewest = 40;        // steps that a drift is looked for in
constexpr double kDrift = 1.1;             // last quarter over first: what is worth a finding
constexpr double kSure = 3.0;              // standard deviations of the rank sum: 1 steady job in 700 comes there
constexpr std::size_t kMostPoints = 2000;  // of the series

struct StepTime {
  std::int64_t number = 0, start_ns = 0, dur_ns = 0;
  std::array<std::int64_t, kMarkedPhases.size()> phase_ns{};
};

struct RankHistory {
  std::int64_t rank = 0;
  std::vector<StepTime> steps;
};

// Phases of one lane do not overlap; each lies in the step that it began in.
RankHistory look(const Trace& trace) {
  RankHistory out{.rank = trace.rank.rank, .steps = {}};
  for (const Step& step : trace.steps) {
    out.steps.push_back({step.number, step.start_ns, step.end_ns - step.start_ns, {}});
  }
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto phase =
        std::find(kMarkedPhases.begin(), kMarkedPhases.end(), static_cast<Phase>(trace.slices.phase[row]));
    if (phase == kMarkedPhases.end()) continue;
    const StepId step = trace.step_at(trace.slices.start_ns[row]);
    if (step == StepId::none) continue;
    out.steps[static_cast<std::size_t>(step)].phase_ns[static_cast<std::size_t>(phase - kMarkedPhases.begin())] +=
        trace.slices.dur_ns[row];
  }
  return out;
}

std::vector<std::int64_t> durations(const std::vector<StepTime>& steps, std::size_t from, std::size_t to) {
  std::vector<std::int64_t> out;
  for (std::size_t i = from; i < to; i++) out.push_back(steps[i].dur_ns);
  return out;
}

std::int64_t median_of(const RankHistory& rank, std::size_t from, std::size_t to) {
  return median(durations(rank.steps, from, to)).value_or(0);
}

Table ranks_table(const std::vector<RankHistory>& ranks) {
  Table table{.name = "ranks",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"steps", ValueType::integer, Unit::count, "Steps that its marks hold"},
                          {"median_ns", ValueType::integer, Unit::ns, "Median step"},
                          {"p95_ns", ValueType::real, Unit::ns, "95 % of its steps are shorter"},
                          {"longest_ns", ValueType::integer, Unit::ns, "Longest step"},
                          {"dataloader_share", ValueType::real, Unit::ratio, "Share of all its steps in data loading"},
                          {"forward_share", ValueType::real, Unit::ratio, "Share in forward passes"},
                          {"backward_share", ValueType::real, Unit::ratio, "Share in backward passes"},
                          {"optimizer_share", ValueType::real, Unit::ratio, "Share in the optimizer"},
                          {"other_share", ValueType::real, Unit::ratio, "Share outside of these"}}};
  for (const RankHistory& rank : ranks) {
    std::vector<std::int64_t> sorted = durations(rank.steps, 0, rank.steps.size());
    std::sort(sorted.begin(), sorted.end());
    std::int64_t all = 0, in_phases = 0;
    std::array<std::int64_t, kMarkedPhases.size()> sums{};
    for (const StepTime& step : rank.steps) {
      all += step.dur_ns;
      for (std::size_t i = 0; i < kMarkedPhases.size(); i++) sums[i] += step.phase_ns[i];
    }
    std::vector<Value> row{rank.rank, count(rank.steps.size()), to_value(median(sorted)),
                           to_value(quantile(sorted, 0.95)), sorted.empty() ? Value() : Value(sorted.back())};
    for (const std::int64_t sum : sums) {
      in_phases += sum;
      row.push_back(share(sum, all));
    }
    row.push_back(share(std::max<std::int64_t>(0, all - in_phases), all));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table slowest_table(const std::vector<RankHistory>& ranks) {
  struct Row {
    std::int64_t rank;
    std::int64_t typical;
    const StepTime* step;
  };
  std::vector<Row> rows;
  for (const RankHistory& rank : ranks) {
    const std::int64_t typical = median_of(rank, 0, rank.steps.size());
    for (const StepTime& step : rank.steps) rows.push_back({rank.rank, typical, &step});
  }
  const std::size_t shown = std::min(rows.size(), kSlowest);
  std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(shown), rows.end(),
                    [](const Row& a, const Row& b) { return a.step->dur_ns > b.step->dur_ns; });
  Table table{.name = "slowest",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"step", ValueType::integer, Unit::none, "Number of the step"},
                          {"wall_ns", ValueType::integer, Unit::ns, "How long it took"},
                          {"over_median", ValueType::real, Unit::none, "Times the rank's median step"},
                          {"longest_phase", ValueType::text, Unit::none, "Phase that most of it went to"},
                          {"phase_ns", ValueType::integer, Unit::ns, "Time in that phase"}}};
  for (std::size_t i = 0; i < shown; i++) {
    const StepTime& step = *rows[i].step;
    const auto most = std::max_element(step.phase_ns.begin(), step.phase_ns.end());
    std::int64_t rest = step.dur_ns;
    for (const std::int64_t phase : step.phase_ns) rest -= phase;
    const auto phase = kMarkedPhases[static_cast<std::size_t>(most - step.phase_ns.begin())];
    const bool outside = rest > *most;
    table.rows.push_back(
        {rows[i].rank, present(step.number), step.dur_ns,
         rows[i].typical > 0 ? Value(static_cast<double>(step.dur_ns) / static_cast<double>(rows[i].typical)) : Value(),
         outside ? text("none") : text(to_string(phase)), outside ? rest : *most});
  }
  return table;
}

Series step_series(const RankHistory& rank) {
  const std::string number = std::to_string(rank.rank);
  Series series{.name = "step_time_rank" + number, .unit = Unit::ns, .t_ns = {}, .v = {}, .metric = "step_time"};
  series.target = "rank " + number;
  series.ranks = {rank.rank};
  const std::size_t each = std::max<std::size_t>(1, (rank.steps.size() + kMostPoints - 1) / kMostPoints);
  for (std::size_t i = 0; i < rank.steps.size(); i += each) {
    series.t_ns.push_back(rank.steps[i].start_ns);
    series.v.push_back(static_cast<double>(median_of(rank, i, std::min(i + each, rank.steps.size()))));
  }
  return series;
}

// The median of the recorded steps over that of the others, of all ranks that have both.
Value recorded_over_others(const Run& run, const std::vector<RankHistory>& ranks) {
  std::vector<std::int64_t> recorded, others;
  for (const RankHistory& rank : ranks) {
    std::set<std::int64_t> numbers;
    for (const Trace& trace : run.traces) {
      if (trace.rank.rank != rank.rank) continue;
      for (const Step& step : trace.steps) {
        if (!step.partial) numbers.insert(step.number);
      }
    }
    for (const StepTime& step : rank.steps) (numbers.contains(step.number) ? recorded : others).push_back(step.dur_ns);
  }
  const auto own = median(std::move(recorded)), rest = median(std::move(others));
  if (!own || !rest || *rest == 0) return {};
  return static_cast<double>(*own) / static_cast<double>(*rest);
}

// How many standard deviations the rank sum of the late steps lies above that of equal halves (Mann and Whitney): a job
// whose steps are of two kinds, short and long ones, has any median, but its late steps do not rank higher.
double late_rank_score(const RankHistory& rank, std::size_t early_from, std::size_t early_to, std::size_t late_from) {
  std::vector<std::int64_t> early = durations(rank.steps, early_from, early_to);
  std::sort(early.begin(), early.end());
  const std::size_t n = rank.steps.size();
  double wins = 0;
  for (std::size_t i = late_from; i < n; i++) {
    const auto [below, above] = std::equal_range(early.begin(), early.end(), rank.steps[i].dur_ns);
    wins += static_cast<double>(below - early.begin()) + 0.5 * static_cast<double>(above - below);
  }
  const auto a = static_cast<double>(early.size()), b = static_cast<double>(n - late_from);
  return (wins - a * b / 2) / std::sqrt(a * b * (a + b + 1) / 12);
}

void find_drift(Answer& answer, const std::vector<RankHistory>& ranks) {
  const RankHistory* worst = nullptr;
  std::int64_t first = 0, last = 0;
  double most = kDrift;
  for (const RankHistory& rank : ranks) {
    const std::size_t n = rank.steps.size();
    if (n < kFewest) continue;
    const std::int64_t early = median_of(rank, n / 10, n / 4), late = median_of(rank, n - n / 4, n);
    if (early <= 0 || static_cast<double>(late) / static_cast<double>(early) < most) continue;
    if (late_rank_score(rank, n / 10, n / 4, n - n / 4) < kSure) continue;
    most = static_cast<double>(late) / static_cast<double>(early);
    worst = &rank, first = early, last = late;
  }
  if (worst == nullptr) return;
  answer.findings.push_back({.id = "steps_grow",
                             .cause = "drift",
                             .sentence = "Steps take longer the longer the job runs",
                             .where = {.rank = worst->rank},
                             .evidence = {{.text = "Median step early on", .value = first, .unit = Unit::ns},
                                          {.text = "Median of the last quarter", .value = last, .unit = Unit::ns}},
                             .gain_reason = std::string(kNoGain),
                             .confidence = "medium",
                             .next = "Record two windows, one early and one late, and compare them: stepscope diff"});
}

Result<Answer> run_history(const Run& run, const AnalyzeOptions& options) {
  Answer answer;
  std::vector<RankHistory> ranks;
  for (const Trace& trace : run.history) ranks.push_back(look(trace));
  std::size_t steps = 0;
  std::vector<std::int64_t> all;
  for (const RankHistory& rank : ranks) {
    steps += rank.steps.size();
    for (const StepTime& step : rank.steps) all.push_back(step.dur_ns);
  }
  const bool known = steps > 0;
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit, known ? meaning : kNoMarks);
  };
  scalar("step_count", count(steps), Unit::count, "Steps that the marks of all ranks hold");
  scalar("step_time_median_ns", to_value(median(std::move(all))), Unit::ns, "Median of all these steps");
  scalar("recorded_over_others", known ? recorded_over_others(run, ranks) : Value(), Unit::none,
         "Median of the recorded steps over that of the others: what recording cost, and whether they are typical");
  answer.tables = {ranks_table(ranks), slowest_table(ranks)};
  for (const RankHistory& rank : ranks) answer.series.push_back(step_series(rank));
  find_drift(answer, ranks);
  limit_rows(answer, answer.tables[0], options.max_rows, "later ranks");
  limit_rows(answer, answer.tables[1], options.max_rows, "shorter steps");
  if (!known) answer.notes.push_back(std::string(kNoMarks));
  return answer;
}

}  // namespace

Analysis history_analysis() { return {"history", "How did the whole job go, beside the recorded steps?", run_history}; }

}  // namespace stepscope::analyze
