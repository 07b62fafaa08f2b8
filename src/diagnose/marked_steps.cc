#include "diagnose/marked_steps.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/answer_parts.h"
#include "model/telemetry.h"
#include "simulate/usual_step.h"

namespace stepscope::diagnose {
namespace {

constexpr std::size_t kFewestSteps = 40;

struct Marked {
  std::vector<std::int64_t> number, ns, waiting_ns;
  std::vector<double> compiling_ns;
  std::vector<Compilation> compiled;  // again, in these steps
};

// What is compiled three times and more once the job is warm: one more compilation is usual where sizes change, since
// it is dynamic from then on, and another one for an evaluation.
std::vector<Compilation> compiled_again(const Trace& history, std::int64_t from_ns) {
  constexpr std::int64_t kFewestAgain = 3;
  std::vector<Compilation> out = compilations(history);
  std::erase_if(out, [&](const Compilation& one) { return one.attempt == 0 || one.start_ns < from_ns; });
  std::map<std::string, std::int64_t> count;
  for (const Compilation& one : out) count[one.frame] += one.guard.empty() ? 0 : 1;
  std::erase_if(out, [&](const Compilation& one) { return count[one.frame] < kFewestAgain; });
  return out;
}

// Time in each step, by time, in which these are compiled; no more than the step has.
std::vector<double> compiling_in(const std::vector<Step>& steps, const std::vector<Compilation>& compiled) {
  std::vector<double> out(steps.size());
  for (const Compilation& one : compiled) {
    const std::int64_t end_ns = one.start_ns + one.dur_ns;
    auto at =
        std::partition_point(steps.begin(), steps.end(), [&](const Step& step) { return step.end_ns <= one.start_ns; });
    for (; at != steps.end() && at->start_ns < end_ns; ++at) {
      const double inside =
          static_cast<double>(std::min(at->end_ns, end_ns)) - static_cast<double>(std::max(at->start_ns, one.start_ns));
      double& own = out[static_cast<std::size_t>(at - steps.begin())];
      const double whole = static_cast<double>(at->end_ns) - static_cast<double>(at->start_ns);
      own = std::min(own + std::max(0.0, inside), std::max(0.0, whole));
    }
  }
  return out;
}

// Without the first tenth, in which the job warms up.
Marked marked(const Case& about) {
  Marked out;
  const Trace* history = marks_of_rank(about.run, about.trace.rank.rank);
  if (history == nullptr) return out;
  const std::vector<Step>& steps = history->steps;
  const std::vector<simulate::Uneven> phases = simulate::uneven_phases(*history);
  if (!steps.empty()) out.compiled = compiled_again(*history, steps[steps.size() / 10].start_ns);
  const std::vector<double> compiling_ns = compiling_in(steps, out.compiled);
  const std::size_t loading = simulate::uneven_index(static_cast<std::uint8_t>(Phase::dataloader));
  for (std::size_t i = steps.size() / 10; i < steps.size(); i++) {
    if (steps[i].number == kAbsent) continue;
    out.number.push_back(steps[i].number);
    out.ns.push_back(steps[i].end_ns - steps[i].start_ns);
    out.waiting_ns.push_back(static_cast<std::int64_t>(phases[i][loading]));
    out.compiling_ns.push_back(compiling_ns[i]);
  }
  return out;
}

// A host that is ahead of its device stands still where it asks for a value, and that step makes up for those before:
// all of them together take no longer than those that were recorded, with the device's work.
bool makes_up(const Case& about, const Marked& all) {
  constexpr double kNoLonger = 0.95;
  if (about.trace.device.size() == 0 || all.ns.empty()) return false;
  const auto sum = static_cast<double>(std::accumulate(all.ns.begin(), all.ns.end(), std::int64_t{0}));
  const double mean = sum / static_cast<double>(all.ns.size());
  return static_cast<double>(about.path_ns) / static_cast<double>(about.steps) >= kNoLonger * mean;
}

std::int64_t median_of(std::vector<std::int64_t> values) { return median(std::move(values)).value_or(0); }

std::int64_t median_between(const std::vector<std::int64_t>& values, double from, double to) {
  const auto at = [&](double part) { return static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size())); };
  return median_of({values.begin() + at(from), values.begin() + at(to)});
}

std::array<std::int64_t, 4> medians_of_quarters(const std::vector<std::int64_t>& values) {
  return {median_between(values, 0, 0.25), median_between(values, 0.25, 0.5), median_between(values, 0.5, 0.75),
          median_between(values, 0.75, 1)};
}

// The newest of the piece of code that takes longest in all, with its guard; empty: no guard is known.
Compilation longest_compiled(const std::vector<Compilation>& compiled) {
  std::map<std::string, double> took;
  for (const Compilation& one : compiled) took[one.frame] += static_cast<double>(one.dur_ns);
  Compilation out;
  for (const Compilation& one : compiled) {
    if (!one.guard.empty() && (out.guard.empty() || took[one.frame] >= took[out.frame])) out = one;
  }
  return out;
}

}  // namespace

std::optional<GrowingSteps> growing_steps(const Case& about) {
  constexpr double kGrown = 1.2;
  const Marked all = marked(about);
  if (all.ns.size() < kFewestSteps) return std::nullopt;
  GrowingSteps out{.usual_ns = median_of(all.ns),
                   .early_ns = median_between(all.ns, 0, 0.2),
                   .late_ns = median_between(all.ns, 0.75, 1)};
  // It rises all the time: a job that takes longer from some moment on has met something.
  const auto quarters = medians_of_quarters(all.ns);
  if (std::adjacent_find(quarters.begin(), quarters.end(), std::greater_equal<>()) != quarters.end())
    return std::nullopt;
  if (out.early_ns <= 0 || static_cast<double>(out.late_ns) < kGrown * static_cast<double>(out.early_ns)) {
    return std::nullopt;
  }
  return out;
}

std::optional<GrowingSteps> grown_since_recorded(const Case& about) {
  constexpr double kGrown = 1.2, kLevel = 0.95;
  Marked all = marked(about);
  if (all.ns.size() < kFewestSteps || makes_up(about, all)) return std::nullopt;
  const std::vector<Step>& recorded = about.trace.steps;
  if (!about.now.window.whole_steps || recorded.empty() || recorded.back().number == kAbsent ||
      recorded.back().number >= all.number.front())
    return std::nullopt;
  for (std::size_t i = 0; i < all.ns.size(); i++)  // what waits and compiles is longer by something else
    all.ns[i] -= all.waiting_ns[i] + static_cast<std::int64_t>(all.compiling_ns[i]);
  const simulate::StepWindow& window = about.now.window;
  GrowingSteps out{.usual_ns = median_of(all.ns),
                   .early_ns = (window.end_ns - window.start_ns) / std::max<std::int64_t>(about.steps, 1),
                   .late_ns = median_between(all.ns, 0.75, 1)};
  const auto quarters = medians_of_quarters(all.ns);
  const auto falls = [](std::int64_t before, std::int64_t here) {
    return static_cast<double>(here) < kLevel * static_cast<double>(before);
  };
  if (std::adjacent_find(quarters.begin(), quarters.end(), falls) != quarters.end()) return std::nullopt;
  if (out.early_ns <= 0 || static_cast<double>(out.usual_ns) < kGrown * static_cast<double>(out.early_ns)) {
    return std::nullopt;
  }
  return out;
}

std::optional<LongSteps> long_steps(const Case& about) {
  constexpr double kFarLonger = 1.5, kMostOften = 0.34, kAsLongAsThese = 0.5;
  constexpr std::int64_t kFewestLong = 3;
  const Marked all = marked(about);
  if (all.ns.size() < kFewestSteps) return std::nullopt;
  LongSteps out{.usual_ns = median_of(all.ns)};
  // Half as much longer as one of the longest is: what a busy machine adds here and there is less.
  std::vector<std::int64_t> longest = all.ns;
  std::nth_element(longest.begin(), longest.begin() + kFewestLong, longest.end(), std::greater<>());
  const auto usual = static_cast<double>(out.usual_ns);
  const double far =
      std::max(kFarLonger * usual, usual + kAsLongAsThese * (static_cast<double>(longest[kFewestLong]) - usual));
  std::vector<std::int64_t> numbers, more;
  std::int64_t sum_ns = 0, more_ns = 0;
  for (std::size_t i = 0; i < all.ns.size(); i++) {
    sum_ns += all.ns[i];
    if (static_cast<double>(all.ns[i]) <= far) continue;
    numbers.push_back(all.number[i]);
  }
  // What a machine does beside the job comes at any time; what the program does, every so many steps.
  std::map<std::int64_t, std::int64_t> distances;
  for (std::size_t i = 1; i < numbers.size(); i++) distances[numbers[i] - numbers[i - 1]]++;
  std::int64_t most_often = 0;
  for (const auto& [distance, count] : distances) {
    if (count > most_often) out.every = distance, most_often = count;
  }
  if (out.every < 2) return std::nullopt;
  std::map<std::int64_t, std::int64_t> places;
  for (const std::int64_t number : numbers) places[number % out.every]++;
  std::int64_t place = 0;
  for (const auto& [one, count] : places) {
    if (count > out.count) place = one, out.count = count;
  }
  const std::int64_t usual_waiting_ns = median_of(all.waiting_ns);
  std::int64_t waiting_ns = 0;
  double compiling_ns = 0;
  for (std::size_t i = 0; i < all.ns.size(); i++) {
    if (all.number[i] % out.every != place) continue;
    more.push_back(all.ns[i] - out.usual_ns);
    more_ns += std::max<std::int64_t>(0, all.ns[i] - out.usual_ns);
    waiting_ns += std::max<std::int64_t>(0, all.waiting_ns[i] - usual_waiting_ns);
    compiling_ns += all.compiling_ns[i];
  }
  // All of these, or nearly: else it is chance.
  constexpr double kNearlyAll = 0.7;
  if (out.count < kFewestLong || static_cast<double>(out.count) < kNearlyAll * static_cast<double>(more.size()) ||
      static_cast<double>(more.size()) > kMostOften * static_cast<double>(all.ns.size())) {
    return std::nullopt;
  }
  if (makes_up(about, all)) return std::nullopt;
  out.more_ns = median_of(more);
  const auto all_more_ns = static_cast<double>(std::max<std::int64_t>(more_ns, 1));
  out.waiting = static_cast<double>(waiting_ns) / all_more_ns;
  out.compiling = compiling_ns / all_more_ns;
  out.share = static_cast<double>(more_ns) / static_cast<double>(std::max<std::int64_t>(sum_ns, 1));
  out.is_recorded = std::any_of(about.trace.steps.begin(), about.trace.steps.end(), [&](const Step& step) {
    return !step.partial && step.number != kAbsent && step.number % out.every == place;
  });
  return out;
}

std::optional<Recompiled> recompiled(const Case& about) {
  constexpr double kMost = 0.99;
  const Marked all = marked(about);
  if (all.ns.size() < kFewestSteps || all.compiled.empty()) return std::nullopt;
  Recompiled out;
  double sum_ns = 0, compiling_ns = 0;
  for (std::size_t i = 0; i < all.ns.size(); i++) {
    sum_ns += static_cast<double>(all.ns[i]);
    compiling_ns += all.compiling_ns[i];
    if (all.compiling_ns[i] > 0) out.steps++;
  }
  for (const Compilation& one : all.compiled) out.count += one.guard.empty() ? 0 : 1;
  out.newest = longest_compiled(all.compiled);
  out.share = std::min(kMost, compiling_ns / std::max(sum_ns, 1.0));
  return out;
}

Compilation guard_in_recording(const Case& about) {
  const Trace* history = marks_of_rank(about.run, about.trace.rank.rank);
  if (history == nullptr) return {};
  std::set<std::int64_t> recorded;
  for (const Step& step : about.trace.steps) recorded.insert(step.number);
  std::vector<Compilation> inside;
  for (Compilation& one : compilations(*history)) {
    const auto fits = [&](const Step& step) {
      return recorded.contains(step.number) && step.start_ns < one.start_ns + one.dur_ns && one.start_ns < step.end_ns;
    };
    if (one.attempt > 0 && std::any_of(history->steps.begin(), history->steps.end(), fits)) {
      inside.push_back(std::move(one));
    }
  }
  return longest_compiled(inside);
}

}  // namespace stepscope::diagnose
