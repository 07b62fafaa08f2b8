#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

// One op launches three kernels that run back to back, one graph launch starts two kernels side by side.
Run small_run() {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), side = f.stream("8");
  f.op(cpu, "aten::add", 0, 100'000);
  f.launch(cpu, "cudaLaunchKernel", 0, 10'000, 1);
  f.kernel(gpu, "k", 15'000, 2'000, 1);  // short, into an idle stream: 5 µs after the call
  f.launch(cpu, "cuLaunchKernelEx", 20'000, 10'000, 2);
  f.kernel(gpu, "k", 200'000, 20'000, 2);  // 170 µs after the call with nothing before it: late
  f.launch(cpu, "cudaLaunchKernelExC", 40'000, 60'000, 3);
  f.kernel(gpu, "k", 220'000, 1'000, 3);  // 120 µs after the call, but 20 of them behind the kernel before
  f.op(cpu, "aten::mm", 300'000, 50'000);
  f.launch(cpu, "cudaGraphLaunch", 300'000, 20'000, 4);
  f.kernel(gpu, "a", 330'000, 10'000, 4);
  f.kernel(side, "b", 335'000, 10'000, 4);  // the union of both is 15 µs
  f.launch(cpu, "cudaMemcpyAsync", 340'000, 3'000, 5);
  return run_of(std::move(f));
}

TEST_CASE("launches: calls by name, graphs once, calls without work apart") {
  const Answer answer = ask(small_run(), "launches");
  CHECK(ns(answer, "launch_count") == 5);
  CHECK(ns(answer, "without_work_count") == 1);
  CHECK(ns(answer, "work_count") == 5);
  CHECK(ns(answer, "host_ns") == 103'000);
  CHECK(cell(answer, "calls", "call", "cudaGraphLaunch", "kind") == Value(std::string("graph")));
  CHECK(cell(answer, "calls", "call", "cudaGraphLaunch", "count") == Value(Ns{1}));
  CHECK(cell(answer, "calls", "call", "cudaGraphLaunch", "work_count") == Value(Ns{2}));
  CHECK(cell(answer, "calls", "call", "cudaGraphLaunch", "device_ns") == Value(Ns{15'000}));
  CHECK(cell(answer, "calls", "call", "cudaMemcpyAsync", "without_work") == Value(Ns{1}));
  CHECK(cell(answer, "calls", "call", "cudaMemcpyAsync", "device_ns") == Value());
  CHECK(cell(answer, "calls", "call", "cuLaunchKernelEx", "delay_max_ns") == Value(Ns{170'000}));
}

TEST_CASE("launches: short, slow and late are three things") {
  const Answer answer = ask(small_run(), "launches");
  CHECK(ns(answer, "short_count") == 2);  // the first kernel, and the graph: 15 µs of work in a call of 20 µs
  CHECK(ns(answer, "slow_count") == 1);   // the third call took 60 µs, so its kernel of 1 µs does not count as short
  CHECK(ns(answer, "late_count") == 1);   // the third kernel waited behind the second
  CHECK(cell(answer, "short_ops", "op", "aten::add", "short_launches") == Value(Ns{1}));
  CHECK(cell(answer, "short_ops", "op", "aten::add", "launches") == Value(Ns{3}));
  CHECK(cell(answer, "short_ops", "op", "aten::add", "excess_ns") == Value(Ns{8'000}));
}

TEST_CASE("launches: a queue is weighted by time, and full just below what CUDA queues") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  constexpr int kLaunches = 1100;
  for (int i = 0; i < kLaunches; i++) f.launch(cpu, "cudaLaunchKernel", i, 1, i + 1);
  for (int i = 0; i < kLaunches; i++) f.kernel(gpu, "k", 2'000 + 10 * i, 10, i + 1);
  const Answer answer = ask(run_of(std::move(f)), "launches");
  const Table& queues = *answer.table("queues");
  REQUIRE(queues.rows.size() == 1);
  CHECK(queues.rows[0][5] == Value(Ns{kLaunches}));
  // Full from call 999 until 101 kernels have started: the k-th start leaves kLaunches - k waiting.
  CHECK(ns(answer, "queue_full_ns") == 2'000 + 10 * (kLaunches - 1000) - 999);
  // Area: 1, 2 … up to all, all until the first start, then one less every 10 ns.
  const double area = kLaunches * (kLaunches - 1) / 2.0 + (2'000.0 - (kLaunches - 1)) * kLaunches +
                      10 * (kLaunches * (kLaunches - 1) / 2.0);
  CHECK(std::get<double>(queues.rows[0][4]) == doctest::Approx(area / (2'000 + 10 * (kLaunches - 1))));
  REQUIRE(answer.series.size() == 1);
  CHECK(answer.series[0].name == "queue_length_rank0_device0_stream1");
}

TEST_CASE("launches: work before its call is left out of the queue, and said") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.launch(cpu, "hipLaunchKernel", 100, 10, 1);
  f.kernel(gpu, "k", 50, 10, 1);
  const Answer answer = ask(run_of(std::move(f)), "launches");
  CHECK(answer.table("queues")->rows.empty());
  CHECK(answer.notes.size() == 1);
}

TEST_CASE("launches: a host without launches has no figures, and a reason") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  const Answer answer = ask(run_of(std::move(f)), "launches");
  CHECK(unknown(answer, "launch_count"));
  CHECK(unknown(answer, "short_share"));
  CHECK(answer.findings.empty());
}

TEST_CASE("launches: a finding only where short kernels leave the device idle") {
  for (const bool idle : {true, false}) {
    TraceFixture f;
    const TrackId cpu = f.host("1"), gpu = f.stream("7"), other = f.stream("8");
    for (int i = 0; i < 10; i++) {
      f.op(cpu, "aten::add", i * 20'000, 15'000);
      f.launch(cpu, "cudaLaunchKernel", i * 20'000, 10'000, i + 1);
      f.kernel(gpu, "k", i * 20'000 + 11'000, 2'000, i + 1);
    }
    if (!idle) f.kernel(other, "sgemm", 0, 200'000);
    const Answer answer = ask(run_of(std::move(f)), "launches");
    REQUIRE(answer.findings.size() == (idle ? 1 : 0));
    if (idle) CHECK(answer.findings[0].where.op == "aten::add");
  }
}

}  // namespace
}  // namespace stepscope
