#include <doctest/doctest.h>

#include "derive/derive.h"
#include "model/host_names.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

Trace& derived(TraceFixture& f) {
  REQUIRE(derive::derive(f.trace, {}));
  return f.trace;
}

TEST_CASE("links: by correlation, with the innermost op around the call") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::linear", 0, 100);
  const SliceId addmm = f.op(cpu, "aten::addmm", 10, 50);
  const SliceId call = f.launch(cpu, "cudaLaunchKernel", 20, 5, 1);
  f.launch(cpu, "cudaFuncGetAttributes", 30, 5, 2);
  f.kernel(gpu, "sgemm", 40, 30, 1);
  const Trace& trace = derived(f);
  CHECK(trace.device.launch[0] == call);
  CHECK(trace.device.op[0] == addmm);
  CHECK(trace.links.device_linked == 1);
  CHECK(trace.links.device_unlinked == 0);
  CHECK(trace.links.launches_with_work == 1);
  CHECK(trace.links.launches_dropped == 0);
}

TEST_CASE("links: a graph launch has many kernels") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  const SliceId call = f.launch(cpu, "cudaGraphLaunch", 0, 5, 9);
  for (int i = 0; i < 3; i++) f.kernel(gpu, "k", 10 + 10 * i, 5, 9);
  const Trace& trace = derived(f);
  for (int i = 0; i < 3; i++) CHECK(trace.device.launch[i] == call);
  CHECK(trace.links.device_linked == 3);
  CHECK(trace.links.launches_with_work == 1);
}

TEST_CASE("links: large ids, orphans on both sides, copies and fills") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  const std::int64_t large = std::int64_t{1} << 60;
  const SliceId copy = f.launch(cpu, "hipMemcpyWithStream", 0, 5, large);
  f.launch(cpu, "cuLaunchKernelEx", 10, 5, large + 1);  // its kernel is not in the file
  f.device(gpu, "gpu_memcpy", "Memcpy HtoD", 20, 5, large);
  f.kernel(gpu, "orphan", 30, 5, large + 2);
  f.kernel(gpu, "without id", 40, 5);
  f.device(gpu, "cuda_sync", "Stream Wait Event", 45, 5);  // no work: not counted
  const Trace& trace = derived(f);
  CHECK(trace.device.launch[0] == copy);
  CHECK(trace.device.launch[1] == SliceId::none);
  CHECK(trace.links.device_linked == 1);
  CHECK(trace.links.device_unlinked == 2);
  CHECK(trace.links.launches_dropped == 1);
}

TEST_CASE("links: of calls that share an id, the one that launches and began last before the work") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  const SliceId first = f.launch(cpu, "cudaLaunchKernel", 0, 5, 5);
  f.launch(cpu, "cudaStreamIsCapturing", 12, 1, 5);
  const SliceId second = f.launch(cpu, "cudaLaunchKernel", 100, 5, 5);
  f.kernel(gpu, "k", 20, 5, 5);
  f.kernel(gpu, "k", 120, 5, 5);
  const Trace& trace = derived(f);
  CHECK(trace.device.launch[0] == first);
  CHECK(trace.device.launch[1] == second);
}

TEST_CASE("links: arrows of any category link what has no id") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  const SliceId call = f.launch(cpu, "runFunction - job_prep_and_submit_for_execution", 0, 5, kAbsent);
  const SliceId op = f.op(cpu, "aten::add", 10, 20);
  f.slice(gpu, "gpu_user_annotation", "step", 20, 60);
  f.kernel(gpu, "a", 20, 5);
  f.kernel(gpu, "b", 40, 20);
  f.kernel(gpu, "c", 70, 5);
  f.flow("my_arrows", 1, cpu, 0, gpu, 20);
  f.flow("my_arrows", 2, cpu, 12, gpu, 45);  // ends inside the kernel
  f.flow("other", 2, gpu, 40, gpu, 70);      // from device to device: no launch
  const Trace& trace = derived(f);
  CHECK(trace.device.launch[0] == call);
  CHECK(trace.device.launch[1] == op);
  CHECK(trace.device.launch[2] == SliceId::none);
  CHECK(trace.links.device_linked == 2);
  CHECK(trace.links.device_linked_by_flow == 2);
  CHECK(trace.links.device_unlinked == 1);
}

TEST_CASE("links: without an op around the call the external id names the op") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), runtime = f.host("2"), gpu = f.stream("7");
  const SliceId op = f.op(cpu, "aten::add", 0, 20, {.external_id = 77});
  f.launch(runtime, "cudaLaunchKernel", 5, 5, 1, 77);
  f.kernel(gpu, "a", 20, 5, 1);
  CHECK(derived(f).device.op[0] == op);
}

TEST_CASE("links: which calls launch work") {
  for (const char* name : {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
                           "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync", "hipLaunchKernel",
                           "hipExtModuleLaunchKernel", "hipMemcpyWithStream", "enqueueCommand memcpyHtoDAsync"})
    CHECK_MESSAGE(launches_work(name), name);
  for (const char* name : {"cudaEventQuery", "cudaStreamSynchronize", "cudaFuncSetAttribute", "cudaMalloc", "INVALID",
                           "cudaGraphInstantiate", "enqueueCommand waitOnEvent", "recordEvent", "cuMemAlloc"})
    CHECK_MESSAGE(!launches_work(name), name);
}

TEST_CASE("backward: by sequence number, the forward thread found by vote") {
  TraceFixture f;
  const TrackId main = f.host("1"), other = f.host("2"), engine = f.host("3");
  f.op(main, "aten::linear", 0, 20, {.sequence = 5, .fwd_thread = 0});
  const SliceId addmm = f.op(main, "aten::addmm", 5, 10, {.sequence = 5, .fwd_thread = 0});
  const SliceId relu = f.op(main, "aten::relu", 30, 10, {.sequence = 6, .fwd_thread = 0});
  f.op(other, "aten::relu", 31, 10, {.sequence = 6, .fwd_thread = 0});  // counts on its own thread
  f.op(main, "aten::add_", 300, 10, {.sequence = 6, .fwd_thread = 0});  // later: not what 6 was made in
  const SliceId relu_node =
      f.op(engine, "autograd::engine::evaluate_function: ReluBackward0", 100, 20, {.sequence = 6, .fwd_thread = 1});
  f.op(engine, "ReluBackward0", 105, 10, {.sequence = 6, .fwd_thread = 1});
  const SliceId addmm_node =
      f.op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 130, 20, {.sequence = 5, .fwd_thread = 1});
  const Trace& trace = derived(f);
  REQUIRE(trace.backward.size() == 2);
  CHECK(trace.backward[0].forward == addmm);
  CHECK(trace.backward[0].backward == addmm_node);
  CHECK(trace.backward[1].forward == relu);
  CHECK(trace.backward[1].backward == relu_node);
}

TEST_CASE("backward: arrows where there are no sequence numbers") {
  TraceFixture f;
  const TrackId main = f.host("1"), engine = f.host("3");
  const SliceId forward = f.op(main, "aten::relu", 30, 10);
  const SliceId node = f.op(engine, "ReluBackward0", 105, 10);
  f.flow("fwdbwd", 1, main, 30, engine, 105);
  const Trace& trace = derived(f);
  REQUIRE(trace.backward.size() == 1);
  CHECK(trace.backward[0].forward == forward);
  CHECK(trace.backward[0].backward == node);
}

}  // namespace
}  // namespace stepscope
