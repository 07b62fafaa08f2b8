// How much time modules took, on traces built by hand.
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

Value of(const Answer& answer, const char* module, const char* column) {
  return cell(answer, "tree", "module", module, column);
}

TEST_CASE("modules: without a device a module has its time on the host, and that of its gradients") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), engine = f.host("2");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 100);
  f.op(cpu, "stepscope.module: layers.0 (Linear)", 10, 30);
  f.op(cpu, "aten::addmm", 12, 20, {.sequence = 5});
  f.op(cpu, "stepscope.module: layers.1 (Linear)", 50, 20);
  f.op(cpu, "aten::mm", 110, 40);
  f.op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 200, 60, {.sequence = 5, .fwd_thread = 1});
  f.op(engine, "AddmmBackward0", 205, 50, {.sequence = 5, .fwd_thread = 1});
  f.op(engine, "aten::mm", 210, 40);
  f.slice(f.host("Spans", "PyTorch Profiler"), "Trace", "PyTorch Profiler (0)", 0, 1000);  // the recording itself
  const Answer answer = ask(run_of(std::move(f)), "modules");
  CHECK(of(answer, "layers.0", "forward_ns") == Value(Ns{30}));
  CHECK(of(answer, "layers.0", "backward_ns") == Value(Ns{60}));
  CHECK(of(answer, "layers.0", "time_ns") == Value(Ns{90}));
  CHECK(of(answer, "layers.0", "class") == Value(std::string("Linear")));
  CHECK(of(answer, "layers", "time_ns") == Value(Ns{110}));  // nobody calls a list
  CHECK(of(answer, "layers", "own_ns") == Value(Ns{0}));
  CHECK(of(answer, "Net", "time_ns") == Value(Ns{160}));
  CHECK(of(answer, "Net", "own_ns") == Value(Ns{50}));
  CHECK(of(answer, "Net", "share") == Value(0.8));
  CHECK(of(answer, "layers.1", "parent") == Value(std::string("layers")));
  CHECK(answer.table("tree")->rows.back()[4] == Value(Ns{40}));  // in no module
  CHECK(real(answer, "outside_share") == doctest::Approx(0.2));
}

TEST_CASE("modules: with a device a module has the time of the work that was launched in it") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "stepscope.module: Net (Net)", 0, 100);
  f.op(cpu, "stepscope.module: a (Linear)", 10, 20);
  f.op(cpu, "aten::addmm", 12, 10, {.sequence = 3});
  f.launch(cpu, "cudaLaunchKernel", 15, 2, 1);
  f.op(cpu, "aten::add", 40, 10);
  f.launch(cpu, "cudaLaunchKernel", 42, 2, 2);
  f.op(cpu, "autograd::engine::evaluate_function: AddmmBackward0", 120, 30, {.sequence = 3, .fwd_thread = 1});
  f.launch(cpu, "cudaLaunchKernel", 125, 2, 3);
  f.launch(cpu, "cudaLaunchKernel", 160, 2, 4);
  f.kernel(gpu, "gemm", 1000, 50, 1);
  f.kernel(gpu, "add", 1100, 7, 2);
  f.kernel(gpu, "gemm", 1200, 90, 3);
  f.kernel(gpu, "other", 1300, 3, 4);
  const Answer answer = ask(run_of(std::move(f)), "modules");
  CHECK(of(answer, "a", "forward_ns") == Value(Ns{50}));
  CHECK(of(answer, "a", "backward_ns") == Value(Ns{90}));
  CHECK(of(answer, "Net", "time_ns") == Value(Ns{147}));
  CHECK(of(answer, "Net", "own_ns") == Value(Ns{7}));
  CHECK(of(answer, "a", "host_ns") == Value(Ns{50}));
  CHECK(real(answer, "outside_share") == doctest::Approx(0.02));
}

TEST_CASE("modules: none recorded is said, with how to record them") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  const Answer answer = ask(run_of(std::move(f)), "modules");
  CHECK(unknown(answer, "module_count"));
  CHECK(answer.table("tree")->rows.empty());
}

}  // namespace
}  // namespace stepscope
