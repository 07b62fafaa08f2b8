// system: the figures of ranks, phases and steps from samples made here, with marks made here.
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"
#include "model/telemetry.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

constexpr std::int64_t kMs = 1'000'000;

SampledSeries series(const char* collector, const char* name, const char* unit, bool counter) {
  SampledSeries out;
  out.host = "node1";
  out.collector = collector;
  out.name = name;
  out.target = "rank 0";
  out.unit = unit;
  out.is_counter = counter;
  out.rank = 0;
  return out;
}

// 50 steps of 400 ms, of which 300 are forward. The main thread works in forward alone.
Run run_with_samples(double cores_in_forward) {
  TraceFixture f;
  const TrackId lane = f.host("1");
  SampledSeries main = series("cpu", "main_thread_time", "ns", true), all = series("cpu", "cpu_time", "ns", true);
  SampledSeries wait = series("cpu", "main_thread_wait", "ns", true);
  SampledSeries memory = series("memory", "rss", "bytes", false), read = series("io", "read", "bytes", true);
  double busy = 0;
  for (int step = 0; step < 50; step++) {
    const Ns t = step * 400 * kMs;
    f.annotation(lane, "ProfilerStep#" + std::to_string(step), t, 400 * kMs);
    f.annotation(lane, "forward", t + 100 * kMs, 300 * kMs);
    for (Ns at = 0; at < 400; at += 50) {  // the 8 samples of a step begin with it
      main.samples.add(t + at * kMs, busy);
      all.samples.add(t + at * kMs, busy * cores_in_forward);
      wait.samples.add(t + at * kMs, 0.2 * static_cast<double>(t + at * kMs));
      memory.samples.add(t + at * kMs, 1e6);
      read.samples.add(t + at * kMs, static_cast<double>(step) * 4000 + 10 * static_cast<double>(at));
      if (at >= 100) busy += 50 * kMs;
    }
  }
  Run run = run_of(std::move(f));
  run.history = std::move(run.traces);
  run.traces.clear();
  run.telemetry = {main, all, wait, memory, read};
  return run;
}

Value in_row(const Answer& answer, const char* table, std::size_t row, const char* column) {
  const Table& found = *answer.table(table);
  for (std::size_t i = 0; i < found.columns.size(); i++) {
    if (found.columns[i].name == column) return found.rows.at(row).at(i);
  }
  return std::string("no such column");
}

TEST_CASE("system: of ranks, phases and steps") {
  const Answer answer = ask(run_with_samples(1), "system");
  CHECK(ns(answer, "series_count") == 5);
  CHECK(std::get<double>(in_row(answer, "ranks", 0, "main_thread")) == doctest::Approx(0.75).epsilon(0.01));
  CHECK(std::get<double>(in_row(answer, "ranks", 0, "rss_bytes")) == doctest::Approx(1e6));
  CHECK(std::get<double>(in_row(answer, "ranks", 0, "read_bytes_per_s")) == doctest::Approx(10'000).epsilon(0.01));
  const std::string forward = "forward", other = "other";
  CHECK(std::get<double>(cell(answer, "phases", "phase", forward, "share")) == doctest::Approx(0.75));
  CHECK(std::get<double>(cell(answer, "phases", "phase", forward, "main_thread")) == doctest::Approx(1));
  CHECK(std::get<double>(cell(answer, "phases", "phase", other, "main_thread")) == doctest::Approx(0));
  CHECK(answer.table("steps")->rows.size() == 50);
  CHECK(std::get<double>(in_row(answer, "steps", 7, "cores")) == doctest::Approx(0.75));
  CHECK(in_row(answer, "steps", 49, "cores") == Value());  // behind the last sample
  CHECK(answer.table("series")->rows.size() == 5);
  CHECK(answer.series.size() == 5);
}

TEST_CASE("system: a phase that one core alone works in, and a main thread without a core") {
  const Answer alone = ask(run_with_samples(1), "system");
  REQUIRE(alone.findings.size() == 2);
  CHECK(alone.findings[0].id == "no_core");
  CHECK(std::get<double>(alone.findings[0].evidence[0].value) == doctest::Approx(0.2));
  CHECK(alone.findings[1].id == "one_core_phase");
  CHECK(alone.findings[1].where.phase == "forward");
  const Answer many = ask(run_with_samples(3), "system");
  REQUIRE(many.findings.size() == 1);
  CHECK(many.findings[0].id == "no_core");
}

TEST_CASE("system: without telemetry all is unknown") {
  const Answer answer = ask(Run{}, "system");
  CHECK(unknown(answer, "series_count"));
  CHECK(unknown(answer, "sampled_ns"));
  CHECK(answer.notes.size() == 1);
}

}  // namespace
}  // namespace stepscope
