// system: the figures of ranks, phases and steps from samples made here, with marks made here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "analyze/answer_fixture.h"
#include "model/telemetry.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

constexpr std::int64_t kSystemMs = 1'000'000;

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
    const Ns t = step * 400 * kSystemMs;
    f.annotation(lane, "ProfilerStep#" + std::to_string(step), t, 400 * kSystemMs);
    f.annotation(lane, "forward", t + 100 * kSystemMs, 300 * kSystemMs);
    for (Ns at = 0; at < 400; at += 50) {  // the 8 samples of a step begin with it
      main.samples.add(t + at * kSystemMs, busy);
      all.samples.add(t + at * kSystemMs, busy * cores_in_forward);
      wait.samples.add(t + at * kSystemMs, 0.2 * static_cast<double>(t + at * kSystemMs));
      memory.samples.add(t + at * kSystemMs, 1e6);
      read.samples.add(t + at * kSystemMs, static_cast<double>(step) * 4000 + 10 * static_cast<double>(at));
      if (at >= 100) busy += 50 * kSystemMs;
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
  f.annotation(lane, "ProfilerStep#0", 0, 400 * kSystemMs);
  f.annotation(lane, "forward", 100 * kSystemMs, 300 * kSystemMs);
  f.op(lane, "aten::sort", 150 * kSystemMs, 50 * kSystemMs);
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
  CHECK(in_row(answer, "phase_work", 1, "self_ns") == Value(250 * kSystemMs));
  CHECK(std::get<double>(in_row(answer, "phase_work", 2, "phase_share")) == doctest::Approx(1.0 / 6));
}

TEST_CASE("system: energy and bytes of a step, and of a sample of its data loader") {
  Run run = run_with_samples(1);
  Made energy = series("power", "energy", "uJ", true), part = energy;
  energy.about.target = "package 0", part.about.target = "package 0 core";
  energy.about.rank = part.about.rank = std::nullopt;
  for (int i = 0; i <= 50; i++) {
    energy.samples.add(i * 400 * kSystemMs, i * 20e6);  // 20 J a step
    part.samples.add(i * 400 * kSystemMs, i * 15e6);    // which are among them
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
    const Ns t = i * 50 * kSystemMs;
    const bool communicates = i % 4 == 1;
    const SliceId op = f.op(lane, communicates ? "gloo:all_reduce" : "aten::mm", t, 50 * kSystemMs);
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

const Series& series_of(const Answer& answer, const std::string& name) {
  const auto found =
      std::find_if(answer.series.begin(), answer.series.end(), [&](const Series& s) { return s.name == name; });
  REQUIRE_MESSAGE(found != answer.series.end(), name);
  return *found;
}

TEST_CASE("system: curves are drawn by metric, with units, of the ranks that they tell about") {
  Run run = run_with_samples(1);
  Made energy = series("gpu", "gpu_energy", "uJ", true), other_gpu = energy, process = energy, index = energy;
  energy.about.target = "gpu 1", other_gpu.about.target = "gpu 0", process.about.target = "pid 7";
  index.about.name = "gpu_index", index.about.is_counter = false;
  energy.about.rank = other_gpu.about.rank = process.about.rank = std::nullopt;
  for (int i = 0; i <= 4; i++) {
    for (Made* one : {&energy, &other_gpu, &process}) one->samples.add(i * kSystemMs, i * 5e3);  // 5 W
    index.samples.add(i * kSystemMs, 1);
  }
  run.telemetry.push_back(sampler_of({process, other_gpu, energy, index}));
  const Answer answer = ask(run, "system");
  CHECK(answer.series.front().target == "rank 0");
  const Series& watts = series_of(answer, "gpu 1 gpu_energy");
  CHECK(watts.metric == "gpu_energy");
  CHECK(watts.suffix == " W");
  CHECK(watts.ranks == std::vector<std::int64_t>{0});
  CHECK(watts.t_ns == std::vector<std::int64_t>{0, 3 * kSystemMs, 4 * kSystemMs});  // of repeats the last is kept
  CHECK(watts.v[0] == doctest::Approx(5));
  CHECK(std::isnan(watts.v[2]));  // a rate holds until the sample that ended it
  CHECK(series_of(answer, "gpu 0 gpu_energy").ranks.empty());
  CHECK(series_of(answer, "pid 7 gpu_energy").ranks.empty());
  CHECK(series_of(answer, "rank 0 cpu_time").suffix == " cores");
  CHECK(series_of(answer, "rank 0 read").unit == Unit::bytes);
  CHECK(series_of(answer, "rank 0 read").suffix == "/s");
  const Series& memory = series_of(answer, "rank 0 rss");
  REQUIRE(memory.v.size() == 3);
  CHECK((memory.v[0] == 1e6 && memory.v[1] == 1e6));  // exact where it has few digits
  CHECK(std::isnan(memory.v[2]));                     // and nothing behind the last
}

TEST_CASE("system: steps and phases as bands, each where it was") {
  const Answer answer = ask(run_with_samples(1), "system");
  REQUIRE(answer.bands.size() == 2);
  const Bands &steps = answer.bands[0], &phases = answer.bands[1];
  CHECK(steps.name == "steps");
  CHECK(steps.bands.size() == 50);
  CHECK(steps.bands[7].label == "7");
  CHECK(steps.bands[7].start_ns == 7 * 400 * kSystemMs);
  CHECK(phases.name == "phases");
  CHECK(phases.bands.size() == 50);
  CHECK(phases.bands[7].label == "forward");
  CHECK(phases.bands[7].start_ns == 7 * 400 * kSystemMs + 100 * kSystemMs);
  CHECK(phases.bands[7].end_ns == 8 * 400 * kSystemMs);
  CHECK(phases.bands[7].share == 1);
}

TEST_CASE("system: a step of many micro-batches shows how long its phases took, and ranks without series nothing") {
  TraceFixture f;
  const TrackId lane = f.host("1");
  for (int step = 0; step < 10; step++) {
    const Ns t = step * 1000 * kSystemMs;
    const int batches = step < 5 ? 50 : 2;
    f.annotation(lane, "ProfilerStep#" + std::to_string(step), t, 1000 * kSystemMs);
    for (int i = 0; i < batches; i++) {
      f.annotation(lane, "forward", t + i * 20 * kSystemMs, 8 * kSystemMs);
      f.annotation(lane, "backward", t + i * 20 * kSystemMs + 10 * kSystemMs, 10 * kSystemMs);
    }
  }
  Run run = run_of(std::move(f));
  run.history = std::move(run.traces);
  run.traces.clear();
  Made memory = series("memory", "rss", "bytes", false);
  for (int i = 0; i < 100; i++) memory.samples.add(i * 100 * kSystemMs, i);
  run.telemetry.push_back(sampler_of({memory}));
  const Answer answer = ask(run, "system");
  REQUIRE(answer.bands.size() == 2);
  CHECK(answer.bands[0].bands.size() == 10);
  const std::vector<Band>& phases = answer.bands[1].bands;
  CHECK(phases.size() == 5 * 2 + 5 * 4);
  CHECK(phases[0].share == doctest::Approx(phases[0].label == "forward" ? 0.4 : 0.5));
  CHECK(phases.back().share == 1);
  run.telemetry[0].sampled[0].rank = 1;
  CHECK(ask(run, "system").bands.empty());
}

TEST_CASE("system: of more steps than a page can show several are one band, with shares of the phases") {
  TraceFixture f;
  const TrackId lane = f.host("1");
  constexpr int kSteps = 20'000;
  for (int step = 0; step < kSteps; step++) {
    f.annotation(lane, "ProfilerStep#" + std::to_string(step), step * kSystemMs, kSystemMs);
    f.annotation(lane, "forward", step * kSystemMs + kSystemMs / 4, kSystemMs / 2);
    f.annotation(lane, "backward", step * kSystemMs + kSystemMs * 3 / 4, kSystemMs / 4);
  }
  Run run = run_of(std::move(f));
  run.history = std::move(run.traces);
  run.traces.clear();
  Made memory = series("memory", "rss", "bytes", false);
  for (int i = 0; i < kSteps; i++) memory.samples.add(i * kSystemMs, i % 7 == 0 ? 1e6 : i * 1e3);
  run.telemetry.push_back(sampler_of({memory}));
  const Answer answer = ask(run, "system");
  REQUIRE(answer.bands.size() == 2);
  const std::vector<Band>&steps = answer.bands[0].bands, &phases = answer.bands[1].bands;
  CHECK(steps.size() <= 500);
  CHECK(steps.front().label.starts_with("0–"));
  CHECK(steps.back().label.ends_with("–19999"));
  CHECK(phases.size() == 2 * steps.size());
  CHECK(phases[0].end_ns == steps[0].end_ns);
  for (const Band& band : phases) CHECK(band.share == doctest::Approx(band.label == "forward" ? 0.5 : 0.25));
  CHECK(answer.series[0].t_ns.size() <= 4 * 201);
  CHECK(std::any_of(answer.notes.begin(), answer.notes.end(),
                    [](const std::string& note) { return note.starts_with("Long series are drawn thinned"); }));
}

TEST_CASE("system: samples of a process without steps have no bands") {
  Run run = run_with_samples(1);
  run.history.clear();
  const Answer answer = ask(run, "system");
  CHECK(answer.bands.empty());
  CHECK(answer.series.size() == 5);
}

TEST_CASE("system: without telemetry all is unknown") {
  const Answer answer = ask(Run{}, "system");
  CHECK(answer.bands.empty());
  CHECK(unknown(answer, "series_count"));
  CHECK(unknown(answer, "sampled_ns"));
  CHECK(answer.notes.size() == 1);
}

}  // namespace
}  // namespace stepscope
