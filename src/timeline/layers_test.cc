// What is drawn over and beside the slices: phases, critical paths and counters, merged for any zoom.
#include <doctest/doctest.h>

#include <cmath>

#include "derive/derive.h"
#include "model/trace_fixture.h"
#include "timeline/counter_curves.h"
#include "timeline/path_pieces.h"
#include "timeline/phase_strip.h"

namespace stepscope {
namespace {

using timeline::CounterCurve;
using timeline::CounterPoint;
using timeline::PathPiece;
using timeline::PhasePiece;

void counter(Trace& trace, TrackId track, std::string_view name, std::int64_t time_ns, double value) {
  trace.counters.time_ns.push_back(time_ns);
  trace.counters.name.push_back(trace.strings.intern(name));
  trace.counters.key.push_back(trace.strings.intern("value"));
  trace.counters.track.push_back(track);
  trace.counters.value.push_back(value);
}

std::vector<CounterCurve> curves_of(Run& run, std::size_t most, std::size_t& left_out) {
  timeline::Pyramids pyramids;
  for (const Trace& trace : run.traces) pyramids.push_back(std::make_unique<timeline::Pyramid>(trace));
  return timeline::counter_curves(run, pyramids, most, left_out);
}

TEST_CASE("phases: the most specific one at each instant, short ones merged into what they mostly are") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.annotation(cpu, "ProfilerStep#1", 0, 10'000);
  f.annotation(cpu, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 1000);
  f.annotation(cpu, "## forward ##", 1000, 3000);
  f.annotation(cpu, "Optimizer.step#SGD.step", 8000, 500);
  f.annotation(cpu, "Optimizer.zero_grad#SGD.zero_grad", 8500, 100);
  derive::derive(f.trace, {});
  const timeline::PhaseStrip strip(f.trace);
  std::vector<PhasePiece> all;
  strip.query(0, 10'000, 1, all);
  REQUIRE(all.size() >= 3);
  CHECK(all.front().phase == Phase::dataloader);
  CHECK(all.front().end_ns == 1000);
  for (std::size_t i = 1; i < all.size(); i++) CHECK(all[i].start_ns >= all[i - 1].end_ns);
  std::vector<PhasePiece> coarse;
  strip.query(8000, 10'000, 4000, coarse);
  REQUIRE(coarse.size() == 1);
  CHECK(coarse[0].phase == Phase::optimizer);
  CHECK(coarse[0].end_ns == 8600);
  std::vector<PhasePiece> none;
  strip.query(9000, 10'000, 1, none);  // no phase is known there
  CHECK(none.empty());
}

TEST_CASE("path pieces: the whole path when nothing is merged, and never more than rows a stretch") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  for (int i = 0; i < 200; i++) {
    f.op(cpu, "aten::mm", 1000 * i, 900);
    f.launch(cpu, "cudaLaunchKernel", 1000 * i + 100, 50, i);
    f.kernel(gpu, "gemm", 1000 * i + 200, 300, i);
  }
  const SliceId wait = f.slice(cpu, "cuda_runtime", "cudaDeviceSynchronize", 200'000, 5000);
  f.kernel(gpu, "last", 200'100, 4800);
  derive::derive(f.trace, {});
  const timeline::Pyramid pyramid(f.trace);
  const timeline::PathPieces path(pyramid);
  CHECK(path.of_steps());  // without marks all is one step
  std::vector<PathPiece> all;
  path.query(0, 300'000, 1, all);
  REQUIRE(all.size() > 10);
  for (std::size_t i = 1; i < all.size(); i++) CHECK(all[i].start_ns == all[i - 1].end_ns);  // at every instant
  for (const PathPiece& piece : all) {
    if (piece.slice == SliceId::none) continue;
    CHECK(piece.start_ns >= f.trace.slices.start_ns[piece.slice]);
    CHECK(piece.end_ns <= f.trace.slices.end_ns(piece.slice));
  }
  CHECK(std::any_of(all.begin(), all.end(), [&](const PathPiece& piece) { return piece.slice == wait; }));
  std::vector<PathPiece> coarse;
  path.query(0, 200'000, 50'000, coarse);
  CHECK(coarse.size() < 20);
  std::uint32_t count = 0;
  for (const PathPiece& piece : coarse) count += piece.count;
  std::vector<PathPiece> exact;
  path.query(0, 200'000, 1, exact);
  CHECK(count == exact.size());
}

TEST_CASE("counters: a value holds until the next one, and gaps are gaps") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "aten::mm", 0, 10'000);
  counter(f.trace, cpu, "queue", 3000, 7);
  counter(f.trace, cpu, "queue", 1000, 5);
  counter(f.trace, cpu, "queue", 5000, NAN);
  counter(f.trace, cpu, "queue", 7000, -2);
  derive::derive(f.trace, {});
  Run run;
  run.traces.push_back(std::move(f.trace));
  std::size_t left_out = 9;
  const auto curves = curves_of(run, 10, left_out);
  CHECK(left_out == 0);
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].low() == -2);
  CHECK(curves[0].high() == 7);
  std::vector<CounterPoint> points;
  curves[0].query(0, 20'000, 1, points);
  REQUIRE(points.size() == 5);
  CHECK(points[0].start_ns == 1000);
  CHECK(points[0].high == 5);
  CHECK(std::isnan(points[2].low));
  CHECK(points[3].high == -2);
  CHECK(points[4].start_ns == 10'000);  // the recording ends
  CHECK(std::isnan(points[4].high));
  points.clear();
  curves[0].query(3500, 4000, 1, points);  // inside of one value
  REQUIRE(points.size() == 1);
  CHECK(points[0].low == 7);
}

TEST_CASE("counters: lowest and highest survive a merge, and none is left out silently") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "aten::mm", 0, 1'000'000);
  for (int i = 0; i < 1000; i++) counter(f.trace, cpu, "busy", 1000 * i, i == 500 ? 1000 : i == 501 ? -1000 : i % 7);
  counter(f.trace, cpu, "second", 10, 1);
  derive::derive(f.trace, {});
  Run run;
  run.traces.push_back(std::move(f.trace));
  std::size_t left_out = 0;
  const auto curves = curves_of(run, 1, left_out);
  CHECK(left_out == 1);
  std::vector<CounterPoint> points;
  curves[0].query(0, 1'000'000, 100'000, points);
  CHECK(points.size() <= 11);
  CHECK(std::any_of(points.begin(), points.end(), [](const CounterPoint& point) { return point.high == 1000; }));
  CHECK(std::any_of(points.begin(), points.end(), [](const CounterPoint& point) { return point.low == -1000; }));
}

TEST_CASE("counters: rates of a sampler hold for the time before the sample, and where it was away there is a gap") {
  TraceFixture f;
  f.trace.clock_base_ns = 1'000'000;
  f.op(f.host("1"), "aten::mm", 0, 20'000);
  derive::derive(f.trace, {});
  Run run;
  run.traces.push_back(std::move(f.trace));
  Trace sampler;
  sampler.sampled.push_back({"node", "cpu", "cpu_time", "host", "ns", "cores", "Time of the cores", true, {}});
  const auto sample = [&](std::int64_t time, double value, double rate) {
    sampler.samples.series.push_back(0);
    sampler.samples.time_ns.push_back(1'000'000 + time);
    sampler.samples.value.push_back(value);
    sampler.samples.rate.push_back(rate);
  };
  sample(0, 0, NAN);
  sample(1000, 2000, 2);
  sample(2000, 5000, 3);
  sample(12'000, 6000, 0.1);  // nobody knows what happened in between
  sample(13'000, 10'000, 4);
  run.telemetry.push_back(std::move(sampler));
  std::size_t left_out = 0;
  const auto curves = curves_of(run, 10, left_out);
  REQUIRE(curves.size() == 1);
  CHECK(curves[0].rank == CounterCurve::kNoRank);
  CHECK(curves[0].unit == "cores");
  std::vector<CounterPoint> points;
  curves[0].query(0, 20'000, 1, points);
  REQUIRE(points.size() >= 5);
  CHECK(points[0].start_ns == 0);
  CHECK(points[0].high == 2);
  CHECK(points[1].high == 3);
  CHECK(std::isnan(points[2].high));
  CHECK(points[3].start_ns == 12'000);
  CHECK(points[3].high == 4);
  CHECK(std::isnan(points[4].high));
}

}  // namespace
}  // namespace stepscope
