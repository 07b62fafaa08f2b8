// system: the figures of ranks, phases and steps from samples made here, with marks made here.
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"
#include "model/telemetry.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

constexpr std::int64_t kMs = 1'000'000;

struct Made {
  SampledSeries about;
  Curve samples;
};

Made series(const char* collector, const char* name, const char* unit, bool counter) {
  Made out;
  out.about = {"node1", collector, name, "rank 0", unit, std::string(unit) == "ns" ? "cores" : std::string(unit) + "/s",
               "",      counter,   0};
  return out;
}

// Since the sample before, in the series' rate_unit.
double rate_at(const Made& one, std::size_t i) {
  const double grown = one.samples.v[i] - one.samples.v[i - 1];
  const double per_ns = grown / static_cast<double>(one.samples.t_ns[i] - one.samples.t_ns[i - 1]);
  return one.about.unit == "ns" ? per_ns : per_ns * 1e9;
}

Trace sampler_of(const std::vector<Made>& all) {
  Trace out;
  for (const Made& one : all) {
    for (std::size_t i = 0; i < one.samples.size(); i++) {
      out.samples.series.push_back(static_cast<std::uint32_t>(out.sampled.size()));
      out.samples.time_ns.push_back(one.samples.t_ns[i]);
      out.samples.value.push_back(one.samples.v[i]);
      out.samples.rate.push_back(one.about.is_counter && i > 0 ? rate_at(one, i) : std::nan(""));
    }
    out.sampled.push_back(one.about);
  }
  return out;
}

// 50 steps of 400 ms, of which 300 are forward. The main thread works in forward alone.
Run run_with_samples(double cores_in_forward) {
  TraceFixture f;
  const TrackId lane = f.host("1");
  Made main = series("cpu", "main_thread_time", "ns", true), all = series("cpu", "cpu_time", "ns", true);
  Made wait = series("cpu", "main_thread_wait", "ns", true);
  Made memory = series("memory", "rss", "bytes", false), read = series("io", "read", "bytes", true);
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
  run.telemetry.push_back(sampler_of({main, all, wait, memory, read}));
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

TEST_CASE("system: what the host did in a phase, an operator and the Python around it") {
  TraceFixture f;
  const TrackId lane = f.host("1");
  f.annotation(lane, "ProfilerStep#0", 0, 400 * kMs);
  f.annotation(lane, "forward", 100 * kMs, 300 * kMs);
  f.op(lane, "aten::sort", 150 * kMs, 50 * kMs);
  Run run = run_of(std::move(f));
  run.telemetry = std::move(run_with_samples(1).telemetry);
  const Answer answer = ask(run, "system");
  const auto is = [&](std::size_t row, const char* phase, const char* name, const char* kind) {
    CHECK(in_row(answer, "phase_work", row, "phase") == Value(std::string(phase)));
    CHECK(in_row(answer, "phase_work", row, "name") == Value(std::string(name)));
    CHECK(in_row(answer, "phase_work", row, "kind") == Value(std::string(kind)));
  };
  is(0, "other", "the step's own code", "python");
  is(1, "forward", "forward", "python");
  is(2, "forward", "aten::sort", "operator");
  CHECK(in_row(answer, "phase_work", 1, "self_ns") == Value(250 * kMs));
  CHECK(std::get<double>(in_row(answer, "phase_work", 2, "phase_share")) == doctest::Approx(1.0 / 6));
}

TEST_CASE("system: energy and bytes of a step, and of a sample of its data loader") {
  Run run = run_with_samples(1);
  Made energy = series("power", "energy", "uJ", true), part = energy;
  energy.about.target = "package 0", part.about.target = "package 0 core";
  energy.about.rank = part.about.rank = std::nullopt;
  for (int i = 0; i <= 50; i++) {
    energy.samples.add(i * 400 * kMs, i * 20e6);  // 20 J a step
    part.samples.add(i * 400 * kMs, i * 15e6);    // which are among them
  }
  run.telemetry.push_back(sampler_of({energy, part}));
  run.history[0].metadata.push_back({std::string(kBatchSize), "4"});
  const Answer before = ask(run, "system");
  CHECK(std::get<double>(in_row(before, "per_step", 0, "host_joules")) == doctest::Approx(20));
  CHECK(std::get<double>(in_row(before, "per_step", 0, "read_bytes")) == doctest::Approx(4000).epsilon(0.01));
  CHECK(in_row(before, "per_step", 0, "host_joules_per_sample") == Value());  // it had no data loader
  std::fill_n(run.history[0].slices.phase.data(), 50, static_cast<std::uint8_t>(Phase::dataloader));
  const Answer after = ask(run, "system");
  CHECK(std::get<double>(in_row(after, "per_step", 0, "samples")) == 4);
  CHECK(std::get<double>(in_row(after, "per_step", 0, "host_joules_per_sample")) == doctest::Approx(5));
}

TEST_CASE("system: what an interface moved during collectives and otherwise") {
  TraceFixture f;
  const TrackId lane = f.host("1");
  Made sent = series("network", "sent", "bytes", true);
  sent.about.target = "eth0";
  sent.about.rank = std::nullopt;
  double bytes = 0;
  for (int i = 0; i < 40; i++) {
    const Ns t = i * 50 * kMs;
    const bool communicates = i % 4 == 1;
    const SliceId op = f.op(lane, communicates ? "gloo:all_reduce" : "aten::mm", t, 50 * kMs);
    if (communicates) f.collective(op, "all_reduce", 1, 2);
    sent.samples.add(t, bytes);
    bytes += i % 4 == 1 ? 50e6 : 0.5e6;  // 1 GB/s, 10 MB/s
  }
  Run run = run_of(std::move(f));
  run.traces[0].clock_base_ns = 0;
  run.telemetry = std::move(run_with_samples(1).telemetry);
  run.telemetry.push_back(sampler_of({sent}));
  const Answer answer = ask(run, "system");
  CHECK(std::get<double>(in_row(answer, "collectives", 0, "during_bytes_per_s")) == doctest::Approx(1e9).epsilon(0.05));
  CHECK(std::get<double>(in_row(answer, "collectives", 0, "otherwise_bytes_per_s")) ==
        doctest::Approx(1e7).epsilon(0.2));
}

TEST_CASE("system: without telemetry all is unknown") {
  const Answer answer = ask(Run{}, "system");
  CHECK(unknown(answer, "series_count"));
  CHECK(unknown(answer, "sampled_ns"));
  CHECK(answer.notes.size() == 1);
}

}  // namespace
}  // namespace stepscope
