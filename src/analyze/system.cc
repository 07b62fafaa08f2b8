// system: what the machine did beside the steps, from what was sampled of it (Run::telemetry): cores, memory, reads and
// writes of each rank, cut by phase and by step on the clock of the steps, and every series that was sampled.
//
// Steps and phases are those of the whole job (Run::history). What counters grew by in a step is interpolated between
// their samples; a phase's rate is the one that explains all samples best, since phases are often shorter than the time
// between two samples (model/telemetry.h).
#include <algorithm>
#include <array>
#include <optional>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/telemetry.h"

namespace stepscope::analyze {
namespace {

constexpr std::string_view kNoTelemetry =
    "No telemetry lies beside this recording: `stepscope run` and `stepscope monitor` sample it into the run folder.";
constexpr double kSecondNs = 1e9;
constexpr std::size_t kMostSteps = 1000;  // rows of the table of steps
constexpr std::size_t kMostSeries = 100;  // drawn
constexpr double kSmallPart = 0.05;       // of a core: what is known so well is known
constexpr double kStarved = 0.1;          // of its time without a core, though it could run: worth a finding
constexpr double kOneCore = 0.85;         // of one core: the main thread is what the phase waits for
constexpr double kMuchOfStep = 0.3;       // share of the steps that a phase must have to be named

enum class Form { cores, per_second, level };
enum class Of { rank, its_gpu };

// What is known of each rank: a column of the tables.
struct Measure {
  std::string_view column, collector, name;
  Form form;
  Unit unit;
  std::string_view meaning;
  Of of = Of::rank;
};
constexpr std::array kMeasures{
    Measure{"cores", "cpu", "cpu_time", Form::cores, Unit::none,
            "Cores that the rank, its data loading workers and other children kept busy"},
    Measure{"main_thread", "cpu", "main_thread_time", Form::cores, Unit::ratio,
            "Part of one core that its main thread used: all that a Python program has there"},
    Measure{"main_thread_wait", "cpu", "main_thread_wait", Form::cores, Unit::ratio,
            "Part of the time in which its main thread could have run and had no core"},
    Measure{"rss_bytes", "memory", "rss", Form::level, Unit::bytes, "Memory in use"},
    Measure{"read_bytes_per_s", "io", "read", Form::per_second, Unit::bytes, "Read per second by system calls"},
    Measure{"written_bytes_per_s", "io", "written", Form::per_second, Unit::bytes,
            "Written per second by system calls"},
    Measure{"gpu_utilization", "gpu", "gpu_utilization", Form::level, Unit::ratio,
            "Part of the time in which any kernel ran on its GPU, as the driver says", Of::its_gpu},
    Measure{"gpu_tensor_active", "gpm", "gpu_tensor_active", Form::level, Unit::ratio,
            "Part of the time in which the tensor cores of its GPU worked", Of::its_gpu},
    Measure{"gpu_watts", "gpu", "gpu_power", Form::level, Unit::none, "Power of its GPU", Of::its_gpu},
};
enum : std::size_t { kCores, kMainThread, kMainThreadWait };

using Cells = std::array<std::optional<double>, kMeasures.size()>;

double scaled(Form form, double per_ns) { return form == Form::per_second ? per_ns * kSecondNs : per_ns; }

struct RankSystem {
  std::int64_t rank = 0;
  const Trace* history = nullptr;                               // its steps and phases; none: not known
  std::array<const SampledSeries*, kMeasures.size()> series{};  // none: not sampled
  Interval steps;                                               // from the first to the last
  Kinds phases = Kinds(kPhases);
  std::array<std::int64_t, kPhases> phase_ns{};
  std::array<Cells, kPhases> by_phase;
};

void take_phases(RankSystem& rank) {
  const Trace& trace = *rank.history;
  if (trace.steps.empty()) return;
  rank.steps = {trace.steps.front().start_ns, trace.steps.back().end_ns};
  std::vector<std::vector<Interval>> found(kPhases);
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const std::size_t phase = trace.slices.phase[row];
    const std::int64_t start = trace.slices.start_ns[row];
    if (phase != static_cast<std::size_t>(Phase::other))
      found[phase].push_back({start, start + trace.slices.dur_ns[row]});
  }
  std::vector<Interval> steps;
  for (const Step& step : trace.steps) steps.push_back({step.start_ns, step.end_ns});
  Intervals rest = make_intervals(std::move(steps));
  for (std::size_t phase = 0; phase < kPhases; phase++) {
    if (phase == static_cast<std::size_t>(Phase::other)) continue;
    rank.phases[phase] = intersect(make_intervals(std::move(found[phase])), rest);
    rest = subtract(rest, rank.phases[phase]);
  }
  rank.phases[static_cast<std::size_t>(Phase::other)] = std::move(rest);
  for (std::size_t phase = 0; phase < kPhases; phase++) rank.phase_ns[phase] = length(rank.phases[phase]);
}

void measure_phases(RankSystem& rank) {
  for (std::size_t m = 0; m < kMeasures.size(); m++) {
    if (rank.series[m] == nullptr) continue;
    const Curve& samples = rank.series[m]->samples;
    const bool is_level = kMeasures[m].form == Form::level;
    const double small = kMeasures[m].form == Form::cores ? kSmallPart : 0;
    const auto found = is_level ? levels_by_kind(samples, rank.phases) : rates_by_kind(samples, rank.phases, small);
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      if (found[phase]) rank.by_phase[phase][m] = is_level ? *found[phase] : scaled(kMeasures[m].form, *found[phase]);
    }
  }
}

// "gpu 3", as the collector of GPUs found this rank there; "": it did not.
std::string gpu_of(const Run& run, std::int64_t rank, std::string& host) {
  for (const SampledSeries& series : run.telemetry) {
    if (series.rank != rank || series.name != "gpu_index" || series.collector != "gpu") continue;
    host = series.host;
    return "gpu " + std::to_string(static_cast<std::int64_t>(series.samples.v.back()));
  }
  return "";
}

// Of a rank that was started anew the longer series counts.
void take_longer(const SampledSeries*& known, const SampledSeries& other) {
  if (known == nullptr || known->samples.size() < other.samples.size()) known = &other;
}

void take_series(const Run& run, RankSystem& rank) {
  std::string gpu_host;
  const std::string gpu = gpu_of(run, rank.rank, gpu_host);
  for (const SampledSeries& series : run.telemetry) {
    for (std::size_t m = 0; m < kMeasures.size(); m++) {
      const Measure& measure = kMeasures[m];
      if (series.collector != measure.collector || series.name != measure.name) continue;
      const bool is_its = measure.of == Of::rank ? series.rank == rank.rank
                                                 : !gpu.empty() && series.target == gpu && series.host == gpu_host;
      if (is_its) take_longer(rank.series[m], series);
    }
  }
}

std::vector<RankSystem> ranks_of(const Run& run) {
  std::vector<RankSystem> ranks;
  for (const SampledSeries& series : run.telemetry) {
    const auto is_it = [&](const RankSystem& one) { return one.rank == *series.rank; };
    if (series.rank && std::none_of(ranks.begin(), ranks.end(), is_it)) ranks.emplace_back().rank = *series.rank;
  }
  for (RankSystem& rank : ranks) take_series(run, rank);
  std::sort(ranks.begin(), ranks.end(), [](const RankSystem& a, const RankSystem& b) { return a.rank < b.rank; });
  for (RankSystem& rank : ranks) {
    const auto at = std::find_if(run.history.begin(), run.history.end(),
                                 [&](const Trace& trace) { return trace.rank.rank == rank.rank; });
    if (at == run.history.end()) continue;
    rank.history = &*at;
    take_phases(rank);
    measure_phases(rank);
  }
  return ranks;
}

// What a measure was during a stretch of time; nullopt where its samples do not reach.
std::optional<double> during(const SampledSeries* series, Form form, Interval when) {
  if (series == nullptr || when.end <= when.start) return {};
  if (form == Form::level) return level(series->samples, when);
  const auto grown = growth(series->samples, when);
  return grown ? std::optional(scaled(form, *grown / static_cast<double>(when.end - when.start))) : std::nullopt;
}

// The steps, as far as samples reach; all samples where there are no steps; empty without any.
Interval measured_time(const RankSystem& rank) {
  std::optional<Interval> reach;
  if (rank.steps.end > rank.steps.start) reach = rank.steps;
  for (const SampledSeries* series : rank.series) {
    if (series == nullptr || series->samples.size() < 2) continue;
    const Interval sampled{series->samples.t_ns.front(), series->samples.t_ns.back()};
    reach = reach ? Interval{std::max(reach->start, sampled.start), std::min(reach->end, sampled.end)} : sampled;
  }
  return reach.value_or(Interval{});
}

void add_measures(Table& table) {
  for (const Measure& measure : kMeasures) {
    table.columns.push_back({std::string(measure.column), ValueType::real, measure.unit, std::string(measure.meaning)});
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
    for (std::size_t m = 0; m < kMeasures.size(); m++)
      row.push_back(to_value(during(rank.series[m], kMeasures[m].form, when)));
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
    std::int64_t all = 0;
    for (const std::int64_t ns : rank.phase_ns) all += ns;
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      if (rank.phase_ns[phase] == 0) continue;
      std::vector<Value> row{rank.rank, text(to_string(static_cast<Phase>(phase))), share(rank.phase_ns[phase], all)};
      for (const auto& cell : rank.by_phase[phase]) row.push_back(to_value(cell));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// The newest steps of each rank.
Table steps_table(const std::vector<RankSystem>& ranks, std::size_t& left_out) {
  Table table{.name = "steps",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"step", ValueType::integer, Unit::none, "Number of the step"},
                          {"start_ns", ValueType::integer, Unit::none, "When it began, in Unix time"},
                          {"wall_ns", ValueType::integer, Unit::ns, "How long it took"}},
              .rows = {}};
  add_measures(table);
  const std::size_t each = ranks.empty() ? 0 : std::max<std::size_t>(1, kMostSteps / ranks.size());
  for (const RankSystem& rank : ranks) {
    if (rank.history == nullptr) continue;
    const std::vector<Step>& steps = rank.history->steps;
    const std::size_t first = steps.size() - std::min(steps.size(), each);
    left_out += first;
    for (std::size_t i = first; i < steps.size(); i++) {
      const Interval when{steps[i].start_ns, steps[i].end_ns};
      std::vector<Value> row{rank.rank, present(steps[i].number), when.start, when.end - when.start};
      for (std::size_t m = 0; m < kMeasures.size(); m++)
        row.push_back(to_value(during(rank.series[m], kMeasures[m].form, when)));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// A series as it is looked at: gauges as they are, counters as rates, each holding until the next sample.
struct Shown {
  Curve curve;
  std::string unit;
};

Shown shown(const SampledSeries& series) {
  if (!series.is_counter) return {series.samples, series.unit};
  const bool is_time = series.unit == "ns";
  Shown out{{}, is_time ? "cores" : series.unit + "/s"};
  const Curve& counter = series.samples;
  for (std::size_t i = 1; i < counter.size(); i++) {
    const double per_ns =
        (counter.v[i] - counter.v[i - 1]) / static_cast<double>(counter.t_ns[i] - counter.t_ns[i - 1]);
    out.curve.add(counter.t_ns[i - 1], is_time ? per_ns : per_ns * kSecondNs);
  }
  return out;
}

void add_series(Answer& answer, const Run& run) {
  Table table{.name = "series",
              .columns = {{"host", ValueType::text, Unit::none, "Machine"},
                          {"target", ValueType::text, Unit::none, "Of what: a rank, the host, a device"},
                          {"collector", ValueType::text, Unit::none, "Source of the samples"},
                          {"name", ValueType::text, Unit::none, "What was sampled"},
                          {"unit", ValueType::text, Unit::none, "Of mean, low and high; of a counter its rate"},
                          {"samples", ValueType::integer, Unit::count, "How often it was sampled"},
                          {"mean", ValueType::real, Unit::none, "Weighted by time"},
                          {"low", ValueType::real, Unit::none, "Lowest"},
                          {"high", ValueType::real, Unit::none, "Highest"},
                          {"meaning", ValueType::text, Unit::none, "What it is"}},
              .rows = {}};
  for (const SampledSeries& series : run.telemetry) {
    const Shown one = shown(series);
    std::vector<Value> row{text(series.host), text(series.target), text(series.collector),
                           text(series.name), text(one.unit),      count(series.samples.size())};
    if (one.curve.size() > 0) {
      const CurveStats stats = stats_of(one.curve, series.samples.t_ns.back());
      row.insert(row.end(), {stats.mean, stats.low, stats.high});
      const Unit unit = one.unit == "bytes" || one.unit == "bytes/s" ? Unit::bytes
                        : one.unit == "ratio"                        ? Unit::ratio
                                                                     : Unit::none;
      if (answer.series.size() < kMostSeries) {
        answer.series.push_back(thinned(series.target + " " + series.name, unit, one.curve));
      }
    } else {
      row.insert(row.end(), 3, Value());
    }
    row.push_back(text(series.meaning));
    table.rows.push_back(std::move(row));
  }
  if (run.telemetry.size() > kMostSeries) {
    answer.notes.push_back("Only the first " + std::to_string(kMostSeries) + " of " +
                           std::to_string(run.telemetry.size()) + " series are drawn; the table series has all.");
  }
  answer.tables.push_back(std::move(table));
}

// The main thread could have run and had no core: more work than cores, or pinned to one that others use.
void find_starved(Answer& answer, const std::vector<RankSystem>& ranks) {
  const RankSystem* worst = nullptr;
  double most = kStarved;
  for (const RankSystem& rank : ranks) {
    const auto wait = during(rank.series[kMainThreadWait], Form::cores, measured_time(rank));
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
      .next = "Use fewer threads (OMP_NUM_THREADS, num_workers), or give the rank cores of its own"};
  if (const auto cores = during(worst->series[kCores], Form::cores, measured_time(*worst))) {
    finding.evidence.push_back({.text = "Cores that the rank used", .value = *cores, .unit = Unit::none});
  }
  answer.findings.push_back(std::move(finding));
}

// A phase that is long, and in which the main thread is busy all the time while hardly anything else is.
void find_one_core(Answer& answer, const std::vector<RankSystem>& ranks) {
  const RankSystem* where = nullptr;
  std::size_t phase_of = 0;
  double longest = kMuchOfStep;
  for (const RankSystem& rank : ranks) {
    std::int64_t all = 0;
    for (const std::int64_t ns : rank.phase_ns) all += ns;
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      const auto& main = rank.by_phase[phase][kMainThread];
      const auto& cores = rank.by_phase[phase][kCores];
      if (all == 0 || !main || !cores || *main < kOneCore || *cores > *main + 0.3) continue;
      const double part = static_cast<double>(rank.phase_ns[phase]) / static_cast<double>(all);
      if (part >= longest) longest = part, where = &rank, phase_of = phase;
    }
  }
  if (where == nullptr) return;
  const std::string phase(to_string(static_cast<Phase>(phase_of)));
  answer.findings.push_back(
      {.id = "one_core_phase",
       .cause = "cpu",
       .sentence = "One core alone works " + (phase == "other" ? "outside of the phases" : "in " + phase) +
                   ": the main thread is busy, and nothing beside it",
       .where = {.rank = where->rank, .phase = phase},
       .evidence = {{.text = "Of one core, by the main thread there",
                     .value = *where->by_phase[phase_of][kMainThread],
                     .unit = Unit::ratio},
                    {.text = "Of the time of all steps", .value = longest, .unit = Unit::ratio}},
       .gain_reason = std::string(kNoGain),
       .confidence = "medium",
       .next = "See which functions run there: stepscope report --only stacks,operators; move them to the device, to "
               "workers of the data loader, or to more threads"});
}

Result<Answer> run_system(const Run& run, const AnalyzeOptions& options) {
  Answer answer;
  const bool known = !run.telemetry.empty();
  const std::vector<RankSystem> ranks = ranks_of(run);
  Interval all{};
  for (const SampledSeries& series : run.telemetry) {
    const Interval sampled{series.samples.t_ns.front(), series.samples.t_ns.back()};
    const bool first = &series == &run.telemetry.front();
    all = first ? sampled : Interval{std::min(all.start, sampled.start), std::max(all.end, sampled.end)};
  }
  add_scalar(answer, "series_count", known ? count(run.telemetry.size()) : Value(), Unit::count,
             known ? "Series that were sampled" : kNoTelemetry);
  add_scalar(answer, "sampled_ns", value_if(known, all.end - all.start), Unit::ns,
             known ? "From the first sample to the last" : kNoTelemetry);
  std::size_t left_out = 0;
  answer.tables = {ranks_table(ranks), phases_table(ranks), steps_table(ranks, left_out)};
  add_series(answer, run);
  if (left_out > 0) {
    answer.notes.push_back("Table steps has the newest steps of each rank; " + std::to_string(left_out) +
                           " older ones are left out.");
  }
  find_starved(answer, ranks);
  find_one_core(answer, ranks);
  limit_rows(answer, answer.tables[1], options.max_rows, "phases of later ranks");
  limit_rows(answer, answer.tables[2], options.max_rows, "later steps");
  limit_rows(answer, answer.tables[3], options.max_rows, "later series");
  if (!known) answer.notes.push_back(std::string(kNoTelemetry));
  return answer;
}

}  // namespace

Analysis system_analysis() { return {"system", "What did the machine do beside the steps?", run_system}; }

}  // namespace stepscope::analyze
