#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

void counter(TraceFixture& f, TrackId on, std::string_view name, std::string_view key, Ns time, double value) {
  Counters& rows = f.trace.counters;
  rows.time_ns.push_back(time);
  rows.name.push_back(f.trace.strings.intern(name));
  rows.key.push_back(f.trace.strings.intern(key));
  rows.track.push_back(on);
  rows.value.push_back(value);
}

void range(TraceFixture& f, TrackId on, std::string_view kernel, Ns start, Ns duration, double value) {
  f.slice(on, "cuda_profiler_range", kernel, start, duration);
  counter(f, on, kernel, "sm__inst.sum", start, value);
}

TEST_CASE("counters: minimum, maximum and the mean by time, whatever the order of the file") {
  TraceFixture f;
  const TrackId on = f.host("0");
  counter(f, on, "power", "watt", 300, 100);
  counter(f, on, "power", "watt", 0, 400);
  counter(f, on, "power", "watt", 100, 700);
  counter(f, on, "power", "limit", 0, 700);
  const Answer answer = ask(run_of(std::move(f)), "counters");
  CHECK(ns(answer, "counter_count") == 2);
  CHECK(cell(answer, "tracks", "key", "watt", "mean") == Value((100 * 400 + 200 * 700) / 300.0));
  CHECK(cell(answer, "tracks", "key", "watt", "minimum") == Value(100.0));
  CHECK(cell(answer, "tracks", "key", "watt", "maximum_t_ns") == Value(Ns{100}));
  CHECK(cell(answer, "tracks", "key", "watt", "last") == Value(100.0));
  CHECK(answer.series.size() == 2);
}

TEST_CASE("counters: ranges with real times belong to the launch inside them") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.host("0", "0");
  f.op(cpu, "aten::mm", 0, 100);
  f.launch(cpu, "cudaLaunchKernel", 10, 5, 1);
  f.op(cpu, "aten::add", 200, 100);
  f.launch(cpu, "cudaLaunchKernel", 210, 5, 2);
  f.launch(cpu, "cudaLaunchKernel", 5'000, 5, 3);  // in no range: counts must not agree
  range(f, gpu, "gemm", 5, 50, 7);
  range(f, gpu, "add_kernel", 205, 50, 8);
  range(f, gpu, "alone", 2'000, 50, 9);
  const Answer answer = ask(run_of(std::move(f)), "counters");
  CHECK(ns(answer, "range_count") == 3);
  CHECK(ns(answer, "counter_count") == 0);
  CHECK(cell(answer, "metrics", "kernel", "gemm", "op") == Value(std::string("aten::mm")));
  CHECK(cell(answer, "metrics", "kernel", "add_kernel", "op") == Value(std::string("aten::add")));
  CHECK(cell(answer, "metrics", "kernel", "add_kernel", "sum") == Value(8.0));
  CHECK(cell(answer, "metrics", "kernel", "alone", "op") == Value());
}

TEST_CASE("counters: ranges whose times are made up pair in order, or not at all") {
  for (const int launches : {4, 5}) {
    TraceFixture f;
    const TrackId cpu = f.host("1"), gpu = f.host("0", "0");
    for (int i = 0; i < launches; i++) {
      f.op(cpu, "op" + std::to_string(i), 1'000'000 + i * 100, 50);
      f.launch(cpu, "cudaLaunchKernel", 1'000'000 + i * 100, 5, i + 1);
    }
    for (int i = 0; i < 4; i++) range(f, gpu, "k" + std::to_string(i), i * 10'000, 10'000, i);
    const Answer answer = ask(run_of(std::move(f)), "counters");
    CHECK(cell(answer, "metrics", "kernel", "k2", "op") == (launches == 4 ? Value(std::string("op2")) : Value()));
    CHECK(answer.notes.size() == 1);
  }
}

TEST_CASE("counters: none is unknown") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  CHECK(unknown(ask(run_of(std::move(f)), "counters"), "counter_count"));
}

}  // namespace
}  // namespace stepscope
