#include "simulate/usual_step.h"

#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "model/answer_parts.h"
#include "model/settings.h"
#include "model/telemetry.h"
#include "simulate/step_pieces.h"

namespace stepscope::simulate {
namespace {

// Fewer series of steps tell little of what is usual.
constexpr std::size_t kFewestSeries = 3, kMostSeries = 400;
// Of so many recorded steps the long ones are as many as usual.
constexpr std::size_t kMostByLength = 1000;
// Of so many steps one is as short as any: shorter ones are chance.
constexpr std::size_t kShortPart = 50;

double middle_one(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of at least one.
double quantile_of(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return *quantile(values, part);
}

constexpr double kUndisturbed = 0.3;  // of the series, where most are held up

// Does a longer step come every so many steps, as what the job itself does now and then?
bool come_in_turn(const std::vector<double>& steps) {
  constexpr double kLonger = 1.2, kMostly = 0.5;
  const double usual = quantile_of(steps, kUndisturbed);
  std::map<std::size_t, std::size_t> gaps;
  std::size_t last = steps.size(), count = 0;
  for (std::size_t i = 0; i < steps.size(); i++) {
    if (steps[i] < kLonger * usual) continue;
    if (last != steps.size() && i - last > 1) gaps[i - last]++;
    last = i;
    count++;
  }
  return std::any_of(gaps.begin(), gaps.end(), [&](const auto& gap) {
    return static_cast<double>(gap.second) >= kMostly * static_cast<double>(count - 1);
  });
}

// A machine that others use holds up one step of five for a while, and so most sums of five: those that it leaves alone
// lie close together, and the middle one far above them. Lengths that only differ lie on both sides of the middle one.
bool are_held_up(const std::vector<double>& sums) {
  constexpr double kFar = 1.5, kFewest = 0.1;
  const double low = quantile_of(sums, kUndisturbed);
  return middle_one(sums) - low > kFar * (low - quantile_of(sums, kFewest));
}

// One of the smallest.
double shortest_of(std::vector<double> values) {
  const auto shortest = values.begin() + static_cast<std::ptrdiff_t>(values.size() / kShortPart);
  std::nth_element(values.begin(), shortest, values.end());
  return *shortest;
}

constexpr auto kForEver = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::vector<Uneven> uneven_phases(const Trace& history) {
  std::vector<Uneven> out(history.steps.size());
  for (std::size_t row = 0; row < history.slices.size(); row++) {
    const std::size_t phase = uneven_index(history.slices.phase[row]);
    const std::size_t step = step_begun_at(history.steps, history.slices.start_ns[row]);
    if (phase == kUneven.size() || step == history.steps.size()) continue;
    out[step][phase] += static_cast<double>(history.slices.dur_ns[row]);
  }
  return out;
}

bool has_unix_time(const Trace& trace) {
  constexpr std::int64_t kLatestNs = std::int64_t{1} << 62;
  return trace.clock_base_ns >= 0 && trace.clock_base_ns <= kLatestNs;
}

std::vector<Interval> times_recorded(const Run& run) {
  std::vector<Interval> out;
  const auto add = [&](const Trace& trace) {
    if (!has_unix_time(trace) || trace.slices.size() == 0) return;
    Interval all{trace.slices.start_ns[std::size_t{0}], 0};
    for (std::size_t row = 0; row < trace.slices.size(); row++) {
      all.start = std::min(all.start, trace.slices.start_ns[row]);
      all.end = std::max(all.end, trace.slices.end_ns(static_cast<SliceId>(row)));
    }
    out.push_back({all.start + trace.clock_base_ns, all.end + trace.clock_base_ns});
  };
  for (const Trace& trace : run.traces) add(trace);
  for (const Trace& trace : run.stack_steps) add(trace);
  return out;
}

double middle_mean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 10);
  const double sum = std::accumulate(values.begin() + cut, values.end() - cut, 0.0);
  return sum / static_cast<double>(static_cast<std::ptrdiff_t>(values.size()) - 2 * cut);
}

namespace {

// Long steps that come now and then, one of which was recorded. `single`: work of steps that nobody recorded;
// `recorded`: of those of the window. Nothing where the window has no such step, or usually has one: then the others
// show how many. Steps that are far longer still are of another kind.
void find_long_steps(const std::vector<double>& single, std::vector<double> recorded, UsualStep& usual) {
  constexpr double kFarLonger = 1.5, kAsLong = 0.5, kLongestAsLong = 2;
  constexpr std::size_t kFewestLong = 3;
  if (usual.by_length_ns.size() != recorded.size() || recorded.size() < 3) return;
  std::sort(recorded.begin(), recorded.end(), std::greater<>());
  const double middle = middle_one(recorded), usual_ns = middle_one(single);
  const double more_here_ns = recorded.front() - middle;
  if (more_here_ns <= 0 || recorded.front() < kFarLonger * middle) return;
  if (usual.by_length_ns.front() > usual_ns + kAsLong * more_here_ns) return;
  const auto is_long = [&](double more) { return more >= kAsLong * more_here_ns; };
  std::size_t others = 0;
  double more_ns = 0, sum_ns = 0;
  for (const double one : single) {
    const double more = one - usual_ns;
    if (more > kLongestAsLong * more_here_ns) continue;
    sum_ns += more;
    others += is_long(more) ? 1 : 0;
    more_ns += is_long(more) ? more : 0;
  }
  if (others < kFewestLong) return;
  const auto count = static_cast<double>(single.size());
  // What series of steps have of it already counts once.
  const double left_ns = sum_ns / count + usual_ns - usual.work_ns;
  usual.now_and_then_ns = std::clamp(left_ns, 0.0, more_ns / count);
  usual.now_and_then = static_cast<std::size_t>(
      std::count_if(recorded.begin(), recorded.end(), [&](double one) { return is_long(one - middle); }));
}

// Of the steps that ended by then.
UsualStep usual_step_until(const Run& run, const StepWindow& window, const Trace* history,
                           const std::vector<Interval>& busy, std::int64_t last_ns) {
  const auto count = static_cast<std::size_t>(window.steps);
  const std::vector<Uneven> phases = uneven_phases(*history);
  struct Series {
    double work_ns = 0;
    Uneven uneven_ns{};
    std::vector<double> by_length_ns;
  };
  std::vector<std::size_t> ends;  // of series: their last steps
  const std::vector<Step>& steps = history->steps;
  const auto work_of = [&](std::size_t k) {
    return std::accumulate(phases[k].begin(), phases[k].end(), static_cast<double>(steps[k].end_ns - steps[k].start_ns),
                           std::minus<>());
  };
  std::vector<double> single;
  std::vector<double> uneven_ns;
  for (const Uneven& one : phases) uneven_ns.push_back(std::accumulate(one.begin(), one.end(), 0.0));
  const std::vector<Parts> parts = parts_of_steps(*history, uneven_ns);
  std::array<std::vector<double>, kParts> single_parts, recorded_parts;
  std::vector<double> recorded_steps;
  const Trace& recorded = run.traces[window.trace];
  const bool has_time = has_unix_time(recorded);
  const std::int64_t base_ns = has_time ? recorded.clock_base_ns - recorded.clock.offset_ns : 0;
  std::size_t in_a_row = 0;
  std::int64_t last_number = kAbsent;
  for (std::size_t i = 0; i < steps.size(); i++) {
    // What was recorded is written in the step after.
    const std::int64_t from = steps[i].start_ns - (steps[i].end_ns - steps[i].start_ns);
    const bool is_free = steps[i].end_ns <= last_ns && std::none_of(busy.begin(), busy.end(), [&](Interval one) {
                           return one.start < steps[i].end_ns && one.end > from;
                         });
    const bool follows = last_number == kAbsent || (steps[i].number != kAbsent && steps[i].number - 1 == last_number);
    in_a_row = !is_free ? 0 : follows ? in_a_row + 1 : 1;
    last_number = steps[i].number;
    if (in_a_row >= count) ends.push_back(i);
    if (is_free) single.push_back(work_of(i));
    const std::int64_t middle_ns = steps[i].start_ns + (steps[i].end_ns - steps[i].start_ns) / 2 - base_ns;
    const bool is_recorded = has_time && middle_ns >= window.start_ns && middle_ns < window.end_ns;
    if (is_recorded) recorded_steps.push_back(work_of(i));
    for (std::size_t p = 0; p < kParts && (is_free || is_recorded); p++) {
      (is_free ? single_parts : recorded_parts)[p].push_back(parts[i][p]);
    }
  }
  // A long job has more than anyone needs.
  const std::size_t each = std::max<std::size_t>(1, ends.size() / kMostSeries);
  std::vector<Series> all;
  for (std::size_t at = 0; at < ends.size(); at += each) {
    Series sum;
    for (std::size_t k = ends[at] + 1 - count; k <= ends[at]; k++) {
      const double work_ns = work_of(k);
      for (std::size_t p = 0; p < kUneven.size(); p++) sum.uneven_ns[p] += phases[k][p];
      sum.work_ns += work_ns;
      if (count <= kMostByLength) sum.by_length_ns.push_back(work_ns);
    }
    std::sort(sum.by_length_ns.begin(), sum.by_length_ns.end(), std::greater<>());
    all.push_back(std::move(sum));
  }
  // The first steps warm up.
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 5));
  if (all.size() < kFewestSeries) return {};
  const auto steps_in_each = static_cast<double>(count);
  UsualStep out;
  single.erase(single.begin(), single.begin() + static_cast<std::ptrdiff_t>(single.size() / 5));
  out.shortest_ns = shortest_of(single);
  for (std::size_t p = 0; p < kParts; p++) {
    std::vector<double>& free = single_parts[p];
    free.erase(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(free.size() / 5));
    const std::vector<double>& own = recorded_parts[p];
    out.parts_ns[p] = middle_one(free);
    out.shortest_parts_ns[p] = shortest_of(std::move(free));
    if (!own.empty())
      out.recorded_parts_ns[p] = std::accumulate(own.begin(), own.end(), 0.0) / static_cast<double>(own.size());
  }
  std::vector<double> values(all.size());
  for (std::size_t p = 0; p < kUneven.size(); p++) {
    std::transform(all.begin(), all.end(), values.begin(), [&](const Series& one) { return one.uneven_ns[p]; });
    out.uneven_ns[p] = middle_mean(values) / steps_in_each;
  }
  std::transform(all.begin(), all.end(), values.begin(), [](const Series& one) { return one.work_ns; });
  const bool held_up = recorded.device.size() == 0 && count > 1 && are_held_up(values) && !come_in_turn(single);
  const auto usual_of = [&](const auto& value_of) {
    std::transform(all.begin(), all.end(), values.begin(), value_of);
    return held_up ? quantile_of(values, kUndisturbed) : middle_one(values);
  };
  out.work_ns = usual_of([](const Series& one) { return one.work_ns; }) / steps_in_each;
  for (std::size_t k = 0; k < all.front().by_length_ns.size(); k++) {
    out.by_length_ns.push_back(usual_of([&](const Series& one) { return one.by_length_ns[k]; }));
  }
  if (recorded.device.size() == 0) find_long_steps(single, std::move(recorded_steps), out);
  return out;
}

}  // namespace

void count_long_steps(UsualStep& usual) {
  if (usual.now_and_then == 0) return;
  usual.work_ns += usual.now_and_then_ns;
  const auto in_window = static_cast<double>(usual.by_length_ns.size());
  for (std::size_t k = 0; k < usual.now_and_then; k++)
    usual.by_length_ns[k] += usual.now_and_then_ns * in_window / static_cast<double>(usual.now_and_then);
}

UsualStep usual_step(const Run& run, const StepWindow& window) {
  const Trace* history = marks_of_rank(run, run.traces[window.trace].rank.rank);
  if (history == nullptr) return {};
  const std::vector<Interval> busy = times_recorded(run);
  const Trace& recorded = run.traces[window.trace];
  const auto around = faults_around_recording(*history, recorded, window.steps);
  const bool kept = around && around->kept_memory();
  if (kept && !around->is_recorded) {
    UsualStep before = usual_step_until(run, window, history, busy, around->recording_ns);
    if (before.work_ns > 0) return before;  // else too few of them follow one another
  }
  UsualStep usual = usual_step_until(run, window, history, busy, kForEver);
  if (kept && around->is_recorded && usual.work_ns > 0) {
    // No step is marked that is as all would be where nobody records: those that are, and the pages these lack.
    const double pages_ns = (around->before - around->after) * static_cast<double>(page_ns(recorded).value_or(0));
    usual.work_ns += pages_ns;
    for (double& step_ns : usual.by_length_ns) step_ns += pages_ns;
  }
  return usual;
}

}  // namespace stepscope::simulate
