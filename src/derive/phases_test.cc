#include <doctest/doctest.h>

#include "derive/derive.h"
#include "derive/phase_names.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

Phase phase_of(const Trace& trace, SliceId id) { return static_cast<Phase>(trace.slices.phase[id]); }

TEST_CASE("phases: marks, inheritance, and what an outer range keeps") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), engine = f.host("2"), gpu = f.stream("7");
  f.annotation(cpu, "ProfilerStep#1", 0, 1000);
  const SliceId load = f.annotation(cpu, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 50);
  const SliceId in_load = f.op(cpu, "aten::stack", 10, 10);
  const SliceId linear = f.op(cpu, "aten::linear", 100, 50);
  const SliceId call = f.launch(cpu, "cudaLaunchKernel", 110, 5, 1);
  const SliceId node = f.op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 200, 50);
  const SliceId recomputed = f.op(engine, "MyModule.forward", 210, 10);
  const SliceId reduce = f.op(engine, "c10d::allreduce_", 230, 10);
  const SliceId step = f.annotation(cpu, "Optimizer.step#AdamW.step", 400, 50);
  const SliceId zero = f.annotation(cpu, "Optimizer.zero_grad#AdamW.zero_grad", 460, 20);
  const SliceId late = f.op(cpu, "aten::item", 500, 20);
  f.kernel(gpu, "gemm", 300, 50, 1);
  REQUIRE(derive::derive(f.trace, {}));
  CHECK(phase_of(f.trace, load) == Phase::dataloader);
  CHECK(phase_of(f.trace, in_load) == Phase::dataloader);
  CHECK(phase_of(f.trace, linear) == Phase::forward);  // on the step's thread, before its backward pass
  CHECK(phase_of(f.trace, call) == Phase::forward);
  CHECK(phase_of(f.trace, node) == Phase::backward);
  CHECK(phase_of(f.trace, recomputed) == Phase::backward);
  CHECK(phase_of(f.trace, reduce) == Phase::communication);
  CHECK(phase_of(f.trace, step) == Phase::optimizer);
  CHECK(phase_of(f.trace, zero) == Phase::zero_grad);
  CHECK(phase_of(f.trace, late) == Phase::other);
  CHECK(static_cast<Phase>(f.trace.device.phase[0]) == Phase::forward);
}

TEST_CASE("phases: what an optimizer's closure does is no part of the optimizer") {
  for (const bool own_thread : {true, false}) {
    CAPTURE(own_thread);
    TraceFixture f;
    const TrackId cpu = f.host("1"), engine = own_thread ? cpu : f.host("2");
    SliceId linear{}, node{}, clip{}, update{}, loss{}, again{}, step{};
    for (int i = 0; i < 2; i++) {
      const std::int64_t at = 1000 * i;
      f.annotation(cpu, "ProfilerStep#" + std::to_string(i), at, 1000);
      step = f.annotation(cpu, "Optimizer.step#AdamW.step", at + 10, 900);
      f.slice(cpu, "python_function", "torch/optim/adamw.py(220): step", at + 11, 898);
      linear = f.op(cpu, "aten::linear", at + 20, 50);
      loss = f.op(cpu, "aten::nll_loss", at + 100, 50);
      node = f.op(engine, "autograd::engine::evaluate_function: AddmmBackward0", at + 200, 300);
      clip = f.op(cpu, "aten::_foreach_mul_", at + 600, 50);
      again = f.annotation(cpu, "forward", at + 700, 50);  // as one calls it that searches along a line
      update = f.op(cpu, "aten::add_", at + 800, 50);
    }
    REQUIRE(derive::derive(f.trace, {}));
    CHECK(phase_of(f.trace, step) == Phase::optimizer);
    CHECK(phase_of(f.trace, linear) == Phase::forward);
    CHECK(phase_of(f.trace, loss) == Phase::forward);
    CHECK(phase_of(f.trace, node) == Phase::backward);
    CHECK(phase_of(f.trace, clip) == Phase::optimizer);
    CHECK(phase_of(f.trace, again) == Phase::forward);
    CHECK(phase_of(f.trace, update) == Phase::optimizer);
  }
}

TEST_CASE("phases: without a backward pass unmarked ops stay unknown") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  const SliceId op = f.op(cpu, "aten::linear", 0, 50);
  REQUIRE(derive::derive(f.trace, {}));
  CHECK(phase_of(f.trace, op) == Phase::other);
}

TEST_CASE("phases: an op is what its autograd link says, whatever its name") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), engine = f.host("2"), gpu = f.stream("7");
  const SliceId forward = f.op(cpu, "my_op", 0, 50, {.sequence = 3, .fwd_thread = 0});
  const SliceId node = f.op(engine, "my_op_grad", 100, 50, {.sequence = 3, .fwd_thread = 1});
  f.launch(engine, "cudaLaunchKernel", 110, 5, 1);
  f.kernel(gpu, "k", 120, 5, 1);
  REQUIRE(derive::derive(f.trace, {}));
  CHECK(phase_of(f.trace, forward) == Phase::forward);
  CHECK(phase_of(f.trace, node) == Phase::backward);
  CHECK(static_cast<Phase>(f.trace.device.phase[0]) == Phase::backward);
}

TEST_CASE("phases: what names say") {
  using derive::phase_of_name;
  const auto annotation = [](std::string_view name) { return phase_of_name(name, SliceKind::user_annotation); };
  const auto op = [](std::string_view name) { return phase_of_name(name, SliceKind::cpu_op); };
  CHECK(annotation("## forward ##") == Phase::forward);
  CHECK(annotation("## backward ##") == Phase::backward);
  CHECK(annotation("forward_backward") == std::nullopt);
  CHECK(annotation("attn(F)") == Phase::forward);
  CHECK(annotation("mlp(W)") == Phase::backward);
  CHECK(annotation("nccl:all_reduce") == Phase::communication);
  CHECK(annotation("save_checkpoint") == Phase::checkpoint);
  CHECK(annotation("validation loop") == Phase::evaluation);
  CHECK(annotation("ProfilerStep#3") == std::nullopt);
  CHECK(op("AddmmBackward0") == Phase::backward);
  CHECK(op("aten::threshold_backward") == Phase::backward);
  CHECK(op("CheckpointFunction") == std::nullopt);
  CHECK(op("aten::linear") == std::nullopt);
  CHECK(phase_of_name("nn.Module: Linear_0", SliceKind::python_function) == Phase::forward);
  CHECK(phase_of_name("torch/optim/adamw.py(200): step", SliceKind::python_function) == Phase::optimizer);
  CHECK(phase_of_name("cudaLaunchKernel", SliceKind::runtime) == std::nullopt);
}

TEST_CASE("modules: nn.Module frames, else the program's own annotations") {
  TraceFixture stacks;
  const TrackId cpu = stacks.host("1");
  const SliceId linear = stacks.slice(cpu, "python_function", "nn.Module: Linear_0", 0, 10);
  stacks.slice(cpu, "python_function", "train.py(3): main", 0, 100);
  stacks.annotation(cpu, "encoder", 20, 10);
  REQUIRE(derive::derive(stacks.trace, {}));
  REQUIRE(stacks.trace.modules.size() == 1);
  CHECK(stacks.trace.modules[0].slice == linear);
  CHECK(stacks.trace.strings[stacks.trace.modules[0].name] == "Linear_0");
  CHECK(stacks.trace.strings[stacks.trace.modules[0].type] == "Linear");

  TraceFixture annotated;
  const TrackId thread = annotated.host("1");
  annotated.annotation(thread, "ProfilerStep#0", 0, 100);
  annotated.annotation(thread, "## forward ##", 0, 50);
  const SliceId encoder = annotated.annotation(thread, "encoder", 0, 20);
  annotated.annotation(thread, "Optimizer.step#SGD.step", 60, 20);
  REQUIRE(derive::derive(annotated.trace, {}));
  REQUIRE(annotated.trace.modules.size() == 1);
  CHECK(annotated.trace.modules[0].slice == encoder);
  CHECK(annotated.trace.modules[0].type == StringId::none);
}

TEST_CASE("modules: the hooks' ranges, as operators or as NVTX has them") {
  for (const char* category : {"cpu_op", "user_annotation"}) {
    CAPTURE(category);
    TraceFixture f;
    const SliceId call = f.slice(f.host("1"), category, "stepscope.module: layers.0.optimizer (Gate)", 0, 10);
    REQUIRE(derive::derive(f.trace, {}));
    REQUIRE(f.trace.modules.size() == 1);
    CHECK(f.trace.modules[0].slice == call);
    CHECK(f.trace.strings[f.trace.modules[0].name] == "layers.0.optimizer");
    CHECK(f.trace.strings[f.trace.modules[0].type] == "Gate");
  }
  constexpr std::string_view kName = "stepscope.module: layers.0.optimizer (Gate)";
  CHECK(derive::phase_of_name(kName, SliceKind::cpu_op) == Phase::forward);
  CHECK(derive::phase_of_name(kName, SliceKind::user_annotation) == Phase::forward);
}

}  // namespace
}  // namespace stepscope
