#include <doctest/doctest.h>

#include "derive/derive.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

Trace& derived(TraceFixture& f) {
  REQUIRE(derive::derive(f.trace, {}));
  return f.trace;
}

TEST_CASE("steps: ProfilerStep annotations, each number once, work with the step of its launch") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), other = f.host("2"), gpu = f.stream("7");
  for (int i = 0; i < 3; i++) {
    f.annotation(cpu, "ProfilerStep#" + std::to_string(10 + i), 100 * i, 90);
    f.annotation(other, "ProfilerStep#" + std::to_string(10 + i), 100 * i + 5, 80);
  }
  f.launch(cpu, "cudaLaunchKernel", 80, 5, 1);
  f.launch(cpu, "cudaLaunchKernel", 95, 2, 2);  // between two steps
  f.kernel(gpu, "late", 120, 30, 1);
  f.kernel(gpu, "between", 160, 10, 2);
  f.kernel(gpu, "unlinked", 210, 10);
  const Trace& trace = derived(f);
  REQUIRE(trace.steps.size() == 3);
  CHECK(trace.step_source == "ProfilerStep annotations");
  CHECK(trace.steps[1].name == "ProfilerStep#11");
  CHECK(trace.steps[1].number == 11);
  CHECK(trace.steps[1].track == cpu);
  CHECK(trace.device.step[0] == StepId{0});
  CHECK(trace.device.step[1] == StepId::none);
  CHECK(trace.device.step[2] == StepId{2});
  CHECK(trace.steps[0].end_ns == 90);
  CHECK(trace.steps[0].device_end_ns == 150);
  CHECK(trace.steps[1].device_end_ns == trace.steps[1].end_ns);
  CHECK(!trace.steps[2].partial);
}

TEST_CASE("steps: the last step is partial when it is far shorter than the others") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.annotation(cpu, "ProfilerStep#0", 0, 100);
  f.annotation(cpu, "ProfilerStep#1", 100, 100);
  f.annotation(cpu, "ProfilerStep#2", 200, 5);
  const Trace& trace = derived(f);
  CHECK(!trace.steps[0].partial);
  CHECK(!trace.steps[1].partial);
  CHECK(trace.steps[2].partial);
}

TEST_CASE("steps: a step that reaches the edge of the recording is partial") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), spans = f.host("PyTorch Profiler", "Spans");
  f.slice(spans, "Trace", "PyTorch Profiler (0)", 0, 290);
  for (int i = 0; i < 3; i++) f.annotation(cpu, "ProfilerStep#" + std::to_string(i), 100 * i, 90);
  const Trace& trace = derived(f);
  CHECK(trace.steps[0].partial);
  CHECK(!trace.steps[1].partial);
  CHECK(trace.steps[2].partial);
}

TEST_CASE("steps: optimizer steps end the rounds; the last of several optimizers counts") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  for (int i = 0; i < 3; i++) {
    f.op(cpu, "aten::linear", 100 * i, 50);
    f.annotation(cpu, "Optimizer.step#SGD.step", 100 * i + 60, 10);
    f.annotation(cpu, "Optimizer.step#EMA.step", 100 * i + 75, 10);
  }
  f.op(cpu, "aten::linear", 300, 50);
  const Trace& trace = derived(f);
  REQUIRE(trace.steps.size() == 4);
  CHECK(trace.steps[0].start_ns == 0);
  CHECK(trace.steps[0].end_ns == 85);
  CHECK(trace.steps[0].partial);
  CHECK(trace.steps[1].start_ns == 85);
  CHECK(trace.steps[1].end_ns == 185);
  CHECK(!trace.steps[1].partial);
  CHECK(trace.steps[3].end_ns == 350);
  CHECK(trace.steps[3].partial);
}

TEST_CASE("steps: serving marks") {
  for (const char* name : {"execute_context_2(512)_generation_1(1)", "step[DECODE bs=8]"}) {
    TraceFixture f;
    const TrackId cpu = f.host("1");
    f.annotation(cpu, name, 0, 100);
    f.annotation(cpu, name, 150, 100);
    const Trace& trace = derived(f);
    REQUIRE(trace.steps.size() == 2);
    CHECK(trace.steps[1].start_ns == 150);
    CHECK(trace.steps[1].number == 1);
  }
}

TEST_CASE("steps: an annotation that fills the recording by repeating, on one thread only") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  for (int i = 0; i < 5; i++) f.annotation(cpu, "train_iteration", 100 * i, 95);
  CHECK(derived(f).steps.size() == 5);
  CHECK(f.trace.step_source == "the repeated annotation \"train_iteration\"");

  TraceFixture workers;
  for (const char* thread : {"1", "2"}) {
    const TrackId track = workers.host(thread);
    for (int i = 0; i < 5; i++) workers.annotation(track, "request", 100 * i, 95);
  }
  CHECK(derived(workers).steps.size() == 1);
}

TEST_CASE("steps: without marks the whole recording is one step") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::mm", 10, 50);
  f.launch(cpu, "cudaLaunchKernel", 20, 5, 1);
  f.kernel(gpu, "k", 30, 100, 1);
  const Trace& trace = derived(f);
  REQUIRE(trace.steps.size() == 1);
  CHECK(trace.steps[0].start_ns == 10);
  CHECK(trace.steps[0].end_ns == 60);
  CHECK(trace.steps[0].device_end_ns == 130);
  CHECK(trace.steps[0].number == kAbsent);
}

}  // namespace
}  // namespace stepscope
