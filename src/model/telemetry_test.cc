#include "model/telemetry.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "model/trace.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMilli = 1'000'000;

Curve counter(std::int64_t first, std::int64_t every, std::size_t n, double (*at)(std::int64_t t)) {
  Curve out;
  for (std::size_t i = 0; i < n; i++) {
    const std::int64_t t = first + static_cast<std::int64_t>(i) * every;
    out.add(t, at(t));
  }
  return out;
}

}  // namespace

TEST_CASE("series: what a counter grew by between two moments, and not beyond its samples") {
  const Curve steady = counter(100, 10, 11, [](std::int64_t t) { return 2.0 * static_cast<double>(t); });
  CHECK(growth(steady, {100, 200}).value() == doctest::Approx(200));
  CHECK(growth(steady, {113, 118}).value() == doctest::Approx(10));
  CHECK_FALSE(growth(steady, {99, 120}));
  CHECK_FALSE(growth(steady, {120, 201}));
  CHECK_FALSE(growth(Curve(), {0, 1}));
}

TEST_CASE("series: the level of a gauge is of the samples within") {
  Curve gauge;
  for (std::int64_t t = 0; t < 5; t++) gauge.add(t * 10, static_cast<double>(t));
  CHECK(level(gauge, {10, 30}).value() == doctest::Approx(1.5));
  CHECK_FALSE(level(gauge, {11, 20}));
  const auto found = levels_by_kind(gauge, {{{0, 5}, {40, 41}}, {{10, 31}}, {}});
  CHECK(found[0].value() == doctest::Approx(2));
  CHECK(found[1].value() == doctest::Approx(2));
  CHECK_FALSE(found[2]);
}

// Steps of 50 ms: 20 ms with a rate of 1, 30 ms with 0.1; sampled every 37 ms, so that no sample is of one kind alone.
TEST_CASE("series: rates of phases that are shorter than the time between two samples") {
  const auto work = [](std::int64_t t) {
    const std::int64_t in_step = t % (50 * kMilli);
    const double whole = static_cast<double>(t / (50 * kMilli)) * static_cast<double>(23 * kMilli);
    return whole + (in_step < 20 * kMilli
                        ? static_cast<double>(in_step)
                        : static_cast<double>(20 * kMilli) + 0.1 * static_cast<double>(in_step - 20 * kMilli));
  };
  Kinds kinds(3);
  for (std::int64_t step = 0; step < 100; step++) {
    kinds[0].push_back({step * 50 * kMilli, (step * 50 + 20) * kMilli});
    kinds[1].push_back({(step * 50 + 20) * kMilli, (step * 50 + 50) * kMilli});
  }
  const auto rates = rates_by_kind(counter(0, 37 * kMilli, 130, work), kinds);
  CHECK(rates[0].value() == doctest::Approx(1));
  CHECK(rates[1].value() == doctest::Approx(0.1));
  CHECK_FALSE(rates[2]);  // it never was
}

TEST_CASE("series: rates that the samples cannot tell are unknown") {
  const auto linear = [](std::int64_t t) { return static_cast<double>(t); };
  Kinds whole_steps(2);  // both kinds are half of every sample
  for (std::int64_t i = 0; i < 100; i++) {
    whole_steps[0].push_back({i * 10, i * 10 + 5});
    whole_steps[1].push_back({i * 10 + 5, i * 10 + 10});
  }
  const auto rates = rates_by_kind(counter(0, 10, 100, linear), whole_steps);
  CHECK_FALSE(rates[0]);
  CHECK_FALSE(rates[1]);
  const auto few = rates_by_kind(counter(0, 7, 2, linear), whole_steps);
  CHECK_FALSE(few[0]);
  // Before the first step and behind the last nothing is said of them.
  const auto outside = rates_by_kind(counter(5'000, 10, 100, linear), whole_steps);
  CHECK_FALSE(outside[0]);
  CHECK(rates_by_kind(Curve(), whole_steps).size() == 2);
}

// What a system call wrote is counted when it ends, which may be in the next phase.
TEST_CASE("series: what is counted late is not told of the phase that comes next") {
  Kinds kinds(3);
  for (std::int64_t step = 0; step < 100; step++) {
    kinds[0].push_back({step * 100 * kMilli, (step * 100 + 20) * kMilli});
    kinds[1].push_back({(step * 100 + 20) * kMilli, (step * 100 + 60) * kMilli});
    kinds[2].push_back({(step * 100 + 60) * kMilli, (step * 100 + 100) * kMilli});
  }
  const auto late_by_7ms = [](std::int64_t t) {  // work is in the second, all of it
    const std::int64_t into = std::clamp<std::int64_t>(t % (100 * kMilli) - 27 * kMilli, 0, 40 * kMilli);
    return static_cast<double>(t / (100 * kMilli) * 40 * kMilli + into);
  };
  const Curve counted = counter(0, 37 * kMilli, 240, late_by_7ms);
  CHECK(rates_by_kind(counted, kinds)[2].value() == doctest::Approx(0.175).epsilon(0.1));
  const auto rates = rates_by_kind(counted, kinds, {.late_ns = 10 * kMilli});
  CHECK(rates[1].value() == doctest::Approx(1).epsilon(0.1));
  CHECK_FALSE(rates[2]);
}

TEST_CASE("series: idle cores are those of the machine while its ranks made steps") {
  Run run;
  CHECK_FALSE(idle_cores(run));
  Trace& history = run.history.emplace_back();
  history.rank.rank = 0;
  history.steps.push_back({.start_ns = 100, .end_ns = 200});
  Trace& telemetry = run.telemetry.emplace_back();
  telemetry.sampled = {{.host = "a", .name = "rss", .target = "rank 0", .rank = 0},
                       {.host = "b", .name = "cpu_idle", .target = "host", .is_counter = true},
                       {.host = "a", .name = "cpu_idle", .target = "host", .is_counter = true}};
  const auto add = [&](std::uint32_t series, std::int64_t t_ns, double value) {
    telemetry.samples.series.push_back(series);
    telemetry.samples.time_ns.push_back(t_ns);
    telemetry.samples.value.push_back(value);
    telemetry.samples.rate.push_back(NAN);
  };
  add(0, 100, 1);
  for (const std::int64_t t : {50, 150, 250}) add(1, t, 8.0 * static_cast<double>(t));
  CHECK_FALSE(idle_cores(run));
  for (const std::int64_t t : {50, 150, 250}) add(2, t, 1.5 * static_cast<double>(t));
  CHECK(idle_cores(run).value() == doctest::Approx(1.5));
}

}  // namespace stepscope
