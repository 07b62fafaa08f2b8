// How long modules took in forward, on traces built by hand.
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

Value forward_ns(const Answer& answer, const char* module) {
  return cell(answer, "by_module", "module", module, "forward_ns");
}

TEST_CASE("flops: a module's time in forward is that of all its calls; what runs again in backward is none of it") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), engine = f.host("2");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 100);
  f.op(cpu, "stepscope.module: layers.0 (Linear)", 10, 30);
  f.op(cpu, "stepscope.module: layers.0 (Linear)", 50, 20);
  f.op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 200, 100);
  f.op(engine, "CheckpointFunctionBackward", 205, 90);
  f.op(engine, "stepscope.module: layers.0 (Linear)", 210, 40);
  f.op(engine, "stepscope.module: late (Linear)", 260, 20);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(forward_ns(answer, "Net") == Value(Ns{100}));
  CHECK(forward_ns(answer, "layers.0") == Value(Ns{50}));
  CHECK(cell(answer, "by_module", "module", "layers.0", "calls") == Value(Ns{3}));
  CHECK(forward_ns(answer, "late") == Value());
  CHECK(forward_ns(answer, "layers") == Value());  // nobody calls a list
}

TEST_CASE("flops: a call within a call of the same module is part of it") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 100);
  f.op(cpu, "stepscope.module: tree (Tree)", 10, 50);
  f.op(cpu, "stepscope.module: leaf (Leaf)", 15, 30);
  f.op(cpu, "stepscope.module: tree (Tree)", 20, 10);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(forward_ns(answer, "tree") == Value(Ns{50}));
  CHECK(forward_ns(answer, "leaf") == Value(Ns{30}));
}

TEST_CASE("flops: on a device a call lasts from its first kernel to the end of its last, without waiting for it") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7"), other = f.stream("8");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 100);
  f.op(cpu, "stepscope.module: a (Linear)", 10, 20);
  f.op(cpu, "aten::addmm", 12, 10);
  f.launch(cpu, "cudaLaunchKernel", 15, 2, 1);
  f.op(cpu, "stepscope.module: b (Linear)", 40, 20);
  f.op(cpu, "aten::addmm", 42, 10);
  f.launch(cpu, "cudaLaunchKernel", 45, 2, 2);
  f.launch(cpu, "cudaLaunchKernel", 48, 2, 3);
  f.op(cpu, "stepscope.module: c (Identity)", 70, 5);
  f.kernel(gpu, "gemm", 1000, 50, 1);
  f.kernel(gpu, "gemm", 1100, 60, 2);
  f.kernel(other, "bias", 1120, 100, 3);
  const Answer answer = ask(run_of(std::move(f)), "flops");
  CHECK(forward_ns(answer, "a") == Value(Ns{50}));
  CHECK(forward_ns(answer, "b") == Value(Ns{120}));
  CHECK(forward_ns(answer, "Net") == Value(Ns{220}));
  CHECK(forward_ns(answer, "c") == Value(Ns{5}));  // no device work: its time on the host
}

}  // namespace
}  // namespace stepscope
