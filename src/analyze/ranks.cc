// ranks: the ranks side by side, the one that the others wait for, and the ranks that are missing or damaged.
//
// Step times and parts are each rank's own; who is late is decided on the run's clock and never closer than its bound
// (model/lateness.h). The phase in which a late rank lost its time is the one that it spends most more in than the
// others' median, in the steps in which it was late; communication is left out, since those who wait are longer in it.
#include <algorithm>
#include <map>
#include <set>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/lateness.h"
#include "model/match_times.h"
#include "model/own_time.h"
#include "model/steady.h"
#include "model/step_parts.h"

namespace stepscope::analyze {
namespace {

constexpr double kWorthNaming = 0.01;  // of the time of the steps
constexpr std::size_t kShown = 12;     // ranks that a note lists by number

struct RankView {
  const Trace* trace = nullptr;
  RankTime time;
  std::vector<StepTimes> steps;
  std::vector<std::int64_t> walls;  // of whole steps, sorted
};

std::vector<RankView> views_of(const Run& run) {
  std::vector<RankView> views;
  for (const Trace& trace : timelines(run)) {
    RankView& view = views.emplace_back(RankView{.trace = &trace, .time = rank_time(trace)});
    view.steps = step_times(trace, view.time);
    view.walls = whole_walls(trace, view.steps);
  }
  return views;
}

// Mean over the devices of the rank, in the window of the headline.
template <class MeasureOf>
Value mean_of(const RankView& rank, bool steps, const MeasureOf& measure) {
  std::int64_t sum = 0, devices = 0;
  for (const DeviceTime& device : rank.time.devices) {
    const Intervals window = steps ? device.steps : make_intervals({device.span});
    if (window.empty()) continue;
    sum += measure(device, window);
    devices++;
  }
  return devices > 0 ? Value(sum / devices) : Value();
}

std::int64_t exposed_in(const DeviceTime& device, const Intervals& window) {
  return shared_length(subtract(device.of(DeviceClass::communication), device.of(DeviceClass::compute)), window);
}

// Mean per step of the time in which only the host worked.
Value host_time(const RankView& rank) {
  std::int64_t sum = 0, count = 0;
  for (const StepTimes& step : rank.steps) {
    if (rank.trace->steps[step.step].partial) continue;
    count++;
    for (const StepPart part : {StepPart::runtime, StepPart::dataloader, StepPart::cpu_op}) {
      sum += step.parts[static_cast<std::size_t>(part)];
    }
  }
  return count > 0 ? Value(sum / count) : Value();
}

std::int64_t lost_records(const Trace& trace) {
  std::int64_t lost = 0;
  for (const Issue& issue : trace.issues) {
    if (issue.severity == Severity::lost) lost += static_cast<std::int64_t>(issue.count);
  }
  return lost;
}

std::int64_t first_event(const Trace& trace) {
  const auto& starts = trace.slices.start_ns;
  return starts.empty() ? 0 : run_time_ns(trace, *std::min_element(starts.begin(), starts.end()));
}

Table ranks_table(const std::vector<RankView>& ranks, const std::vector<RankLateness>& late, bool steps) {
  Table table{
      .name = "ranks",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"step_ns", ValueType::integer, Unit::ns, "Median wall time of its whole steps"},
                  {"late_ns", ValueType::integer, Unit::ns,
                   "Sum over its collectives of how much later than the median rank it came; unknown: no common clock"},
                  {"late_share", ValueType::real, Unit::ratio, "Share of its collectives to which it came late"},
                  {"compute_ns", ValueType::integer, Unit::ns, "Union of compute in the window of the headline"},
                  {"exposed_ns", ValueType::integer, Unit::ns, "Communication in it while no compute ran"},
                  {"idle_ns", ValueType::integer, Unit::ns, "Time of it without device work"},
                  {"host_ns", ValueType::integer, Unit::ns, "Mean per step: only the host worked"},
                  {"first_late_ns", ValueType::integer, Unit::ns,
                   "When it was late for the first time, from the first event of the run; unknown: never"},
                  {"starts_after_ns", ValueType::integer, Unit::ns,
                   "How much later than the first rank's its recording begins, on the run's clock"},
                  {"lost_records", ValueType::integer, Unit::count, "What its file lost; see quality"},
                  {"file", ValueType::text, Unit::none, "Its file"}}};
  std::int64_t first = INT64_MAX;
  for (const RankView& rank : ranks) first = std::min(first, first_event(*rank.trace));
  for (std::size_t i = 0; i < ranks.size(); i++) {
    const RankView& rank = ranks[i];
    const bool known = !late.empty() && late[i].collectives > 0;
    const bool ever = known && late[i].first_late_ns != kAbsent;
    table.rows.push_back(
        {rank.trace->rank.rank, to_value(median(rank.walls)), known ? Value(late[i].total_ns) : Value(),
         known ? share(late[i].late_collectives, late[i].collectives) : Value(),
         mean_of(rank, steps,
                 [](const DeviceTime& d, const Intervals& w) { return shared_length(d.of(DeviceClass::compute), w); }),
         mean_of(rank, steps, exposed_in),
         mean_of(rank, steps, [](const DeviceTime& d, const Intervals& w) { return length(w) - busy_in(d, w); }),
         host_time(rank), ever ? Value(late[i].first_late_ns - first) : Value(),
         clock_is_fitted(*rank.trace) || rank.trace->clock.source == ClockSource::wall
             ? Value(first_event(*rank.trace) - first)
             : Value(),
         lost_records(*rank.trace), rank.trace->source.path});
  }
  return table;
}

Table clocks_table(const Run& run) {
  Table table{
      .name = "clocks",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"clock", ValueType::text, Unit::none, "What leads its clock to the run's"},
                  {"offset_ns", ValueType::integer, Unit::ns, "Added to its times"},
                  {"drift_ppm", ValueType::real, Unit::none, "Its drift that was taken out, in parts per million"},
                  {"bound_ns", ValueType::integer, Unit::ns,
                   "collectives: nine in ten of their ends agree as closely; same host: two processes read its clock "
                   "as alike; unknown: neither"},
                  {"pairs", ValueType::integer, Unit::count, "Shared collectives behind it"}}};
  for (const Trace& trace : timelines(run)) {
    const TraceClock& clock = trace.clock;
    const bool fitted = clock.source == ClockSource::collectives;
    table.rows.push_back({trace.rank.rank, std::string(to_string(clock.source)), clock.offset_ns,
                          fitted ? Value(clock.drift * 1e6) : Value(),
                          clock.bound_ns >= 0 ? Value(clock.bound_ns) : Value(),
                          fitted ? Value(std::int64_t{clock.pairs}) : Value()});
  }
  return table;
}

// Runs of ranks that the run should have and that were not opened.
Table missing_table(const Run& run, std::int64_t& missing) {
  Table table{.name = "missing",
              .columns = {{"first", ValueType::integer, Unit::none, "First rank of a run of ranks without a trace"},
                          {"last", ValueType::integer, Unit::none, "Last one"},
                          {"count", ValueType::integer, Unit::count, "How many"}}};
  std::set<std::int64_t> opened;
  std::int64_t world = 0;
  for (const Trace& trace : timelines(run)) {
    opened.insert(trace.rank.rank);
    world = std::max(world, trace.rank.world_size);
  }
  std::int64_t next = 0;
  const auto gap = [&](std::int64_t end) {
    if (next < end) {
      table.rows.push_back({next, end - 1, end - next});
      missing += end - next;
    }
    next = end + 1;
  };
  for (const std::int64_t rank : opened) {
    if (rank < world) gap(rank);
  }
  gap(world);
  return table;
}

struct Excess {
  Phase phase = Phase::other;
  bool device = false;
  std::int64_t ns = 0;  // median over the steps
};

using ByStep = std::map<std::int64_t, const StepTimes*>;

std::vector<ByStep> steps_by_number(const std::vector<RankView>& ranks) {
  std::vector<ByStep> out(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); i++) {
    for (const StepTimes& step : ranks[i].steps) out[i].emplace(step_number(*ranks[i].trace, step.step), &step);
  }
  return out;
}

// Where rank `who` spent more than the others in the steps in which it was late.
Excess lost_in(const std::vector<ByStep>& steps, std::size_t who, const RankLateness& late) {
  Excess best;
  for (std::size_t at = 0; at < 2 * kPhases; at++) {
    const std::size_t phase = at % kPhases;
    const bool device = at >= kPhases;
    if (static_cast<Phase>(phase) == Phase::communication) continue;
    const auto time = [&](const StepTimes& s) { return device ? s.device_phases[phase] : s.host_phases[phase]; };
    std::vector<std::int64_t> excess;
    for (const StepLateness& step : late.steps) {
      const auto own = steps[who].find(step.step);
      if (step.late_ns == 0 || own == steps[who].end()) continue;
      std::vector<std::int64_t> others;
      for (std::size_t i = 0; i < steps.size(); i++) {
        const auto other = i == who ? steps[i].end() : steps[i].find(step.step);
        if (other != steps[i].end()) others.push_back(time(*other->second));
      }
      if (const auto middle = median(std::move(others))) excess.push_back(time(*own->second) - *middle);
    }
    const auto middle = median(std::move(excess));
    if (middle && *middle > best.ns) best = {static_cast<Phase>(phase), device, *middle};
  }
  return best;
}

std::int64_t whole_time(const RankView& rank) {
  std::int64_t sum = 0;
  for (const std::int64_t wall : rank.walls) sum += wall;
  if (sum > 0) return sum;
  for (const DeviceTime& device : rank.time.devices) sum = std::max(sum, device.span.end - device.span.start);
  return sum;
}

// In the few steps of a recording it may be one rank by chance: in all steps that are marked it does no more than
// others.
bool is_late_by_chance(const Run& run, std::int64_t rank, std::int64_t late_ns) {
  const auto usual = usual_excess_ns(run, rank);
  return usual && 4 * *usual < late_ns;
}

void find_straggler(Answer& answer, const Run& run, const std::vector<RankView>& ranks,
                    const std::vector<RankLateness>& late) {
  if (late.empty()) return;
  const auto worst =
      std::max_element(late.begin(), late.end(), [](const auto& a, const auto& b) { return a.total_ns < b.total_ns; });
  const auto who = static_cast<std::size_t>(worst - late.begin());
  const std::int64_t whole = whole_time(ranks[who]);
  std::int64_t steps = 0, worst_in = 0;
  for (const StepLateness& step : worst->steps) {
    if (step.step == kOutsideSteps) continue;
    steps++;
    worst_in += step.worst ? 1 : 0;
  }
  const double part = whole > 0 ? static_cast<double>(worst->total_ns) / static_cast<double>(whole) : 0;
  if (part < kWorthNaming) return;
  // A rank is to blame when it is the one; where all take turns, the load is uneven from step to step.
  const bool same =
      is_always_the_same(static_cast<std::size_t>(worst_in), static_cast<std::size_t>(steps), ranks.size());
  const bool one =
      same && !is_late_by_chance(run, run.traces[who].rank.rank, worst->total_ns / std::max<std::int64_t>(steps, 1));
  const Excess lost = lost_in(steps_by_number(ranks), who, *worst);
  const std::string name = "rank " + std::to_string(run.traces[who].rank.rank);
  Finding finding{
      .id = one ? "straggler" : "uneven_ranks",
      .cause = "imbalance",
      .sentence = one ? "The other ranks wait for " + name : "The ranks wait for each other in turn, most for " + name,
      .evidence = {{.text = "Time by which it came later than the median rank",
                    .value = worst->total_ns,
                    .unit = Unit::ns},
                   {.text = "Of the time of its steps", .value = part, .unit = Unit::ratio},
                   {.text = "Steps in which no rank lost more", .value = share(worst_in, steps), .unit = Unit::ratio},
                   {.text = "Moments closer than this cannot be told apart",
                    .value = to_value(clock_bound_ns(run)),
                    .unit = Unit::ns}},
      .gain_reason = std::string(kNoGain),
      .confidence = one ? "high" : "medium",
      .next = "Compare this rank's steps with another's (steps.phases), its input sizes and its host"};
  finding.where.rank = run.traces[who].rank.rank;
  if (one) finding.changes = {{.kind = ChangeKind::level_rank, .rank = finding.where.rank}};
  if (lost.ns > 0) {
    finding.where.phase = std::string(to_string(lost.phase));
    const std::string where =
        lost.phase == Phase::other ? "outside of all phases" : "in " + std::string(to_string(lost.phase));
    finding.evidence.push_back({.text = "More time than the others " + where +
                                        (lost.device ? " on the device" : " on the host") + ", median per step",
                                .value = lost.ns,
                                .unit = Unit::ns});
  }
  answer.findings.push_back(std::move(finding));
}

void add_notes(Answer& answer, const Run& run, const std::vector<RankLateness>& late, const Table& missing) {
  if (timelines(run).size() < 2) {
    answer.notes.push_back("One rank was opened. Give the files of all ranks, or their folder, to compare them.");
    return;
  }
  std::string without;
  std::size_t count = 0;
  for (const Trace& trace : timelines(run)) {
    if (clock_is_fitted(trace)) continue;
    if (count++ < kShown) without += (without.empty() ? "" : ", ") + std::to_string(trace.rank.rank);
  }
  if (count > 0) {
    answer.notes.push_back("It cannot be told which rank is late: the clocks of " + std::to_string(count) +
                           " ranks could not be fitted, since too few of their collectives are also on another rank (" +
                           without + (count > kShown ? ", …" : "") + "); table clocks says what was taken instead.");
  } else if (late.empty()) {
    answer.notes.push_back("It cannot be told which rank is late: no collective was found on two ranks.");
  } else if (answer.findings.empty()) {
    answer.notes.push_back("No rank comes late by a hundredth of its time or more, beyond what the clocks can tell.");
  }
  if (!missing.rows.empty()) {
    answer.notes.push_back("Ranks without a trace are in table missing; the rest is compared without them.");
  }
  for (const Issue& issue : run.issues) {
    if (issue.code == "file_left_out") answer.notes.push_back("Left out: " + issue.sentence);
  }
}

Result<Answer> run_ranks(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto ranks = views_of(run);
  const auto late = lateness(run);
  std::vector<RankTime> times;
  times.reserve(ranks.size());
  std::vector<std::int64_t> medians;
  for (const RankView& rank : ranks) {
    times.push_back(rank.time);
    if (const auto middle = median(rank.walls)) medians.push_back(*middle);
  }
  std::sort(medians.begin(), medians.end());
  std::int64_t missing = 0, world = 0;
  for (const Trace& trace : run.traces) world = std::max(world, trace.rank.world_size);
  Table missing_ranks = missing_table(run, missing);
  const bool steps = headline_is_steps(times);
  add_scalar(answer, "rank_count", static_cast<std::int64_t>(ranks.size()), Unit::count, "Traces opened");
  add_scalar(answer, "world_size", world > 0 ? Value(world) : Value(), Unit::count,
             world > 0 ? "Ranks of the job, as recorded" : "Not recorded");
  add_scalar(answer, "missing_count", world > 0 ? Value(missing) : Value(), Unit::count,
             world > 0 ? "Ranks of the job without a trace" : "The size of the job is not recorded");
  add_scalar(answer, "fastest_step_ns", medians.empty() ? Value() : Value(medians.front()), Unit::ns,
             medians.empty() ? kNoSteps : "Median step of the fastest rank");
  add_scalar(answer, "slowest_step_ns", medians.empty() ? Value() : Value(medians.back()), Unit::ns,
             medians.empty() ? kNoSteps : "Median step of the slowest rank");
  const auto bound = clock_bound_ns(run);
  add_scalar(answer, "clock_bound_ns", ranks.size() > 1 ? to_value(bound) : Value(), Unit::ns,
             ranks.size() > 1 && bound ? "Lateness below this cannot be told from the clocks' disagreement"
                                       : "Needs two ranks that share collectives");
  find_straggler(answer, run, ranks, late);
  add_notes(answer, run, late, missing_ranks);
  Table table = ranks_table(ranks, late, steps);
  if (!late.empty()) {
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [](const auto& a, const auto& b) { return a[2] > b[2]; });  // by late_ns, unknown last
  }
  answer.tables = {std::move(table), clocks_table(run), std::move(missing_ranks)};
  limit_rows(answer, answer.tables[0], options.max_rows, "ranks that were less late");
  limit_rows(answer, answer.tables[1], options.max_rows, "later ranks");
  if (answer.tables.back().rows.empty()) answer.tables.pop_back();
  return answer;
}

}  // namespace

Analysis ranks_analysis() {
  return {"ranks", "Do all ranks do the same, and which one do the others wait for?", run_ranks};
}

}  // namespace stepscope::analyze
