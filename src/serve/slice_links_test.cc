// What a chosen slice is linked with, and the Python code it came from.
#include "serve/slice_links.h"

#include <doctest/doctest.h>

#include "derive/derive.h"
#include "derive/derive_run.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

using serve::LinkKind;
using serve::Links;

struct Linked {
  LinkKind kind;
  std::size_t rank;
  SliceId slice;
  friend bool operator==(const Linked&, const Linked&) = default;
};

std::vector<Linked> linked(const Run& run, std::size_t rank, SliceId slice) {
  std::vector<Linked> out;
  for (const serve::LinkedSlice& one : serve::links_of(run, rank, slice, 100).found) {
    out.push_back({one.kind, one.rank, one.slice});
  }
  return out;
}

Run run_of(TraceFixture& f) {
  derive::derive(f.trace, {});
  Run run;
  run.traces.push_back(std::move(f.trace));
  derive::derive_run(run, 1);
  return run;
}

TEST_CASE("slice links: launches, passes and recorded arrows, each other slice once") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), autograd = f.host("2"), gpu = f.stream("7");
  const SliceId forward = f.op(cpu, "aten::mm", 0, 100, {.sequence = 5, .fwd_thread = 0});
  const SliceId call = f.launch(cpu, "cudaLaunchKernel", 10, 5, 1);
  const SliceId kernel = f.kernel(gpu, "gemm", 20, 50, 1);
  const SliceId backward = f.op(autograd, "MmBackward0", 200, 50, {.sequence = 5, .fwd_thread = 1});
  const SliceId inner = f.op(autograd, "aten::mm", 210, 20);
  const SliceId sender = f.op(cpu, "sender", 300, 10), receiver = f.op(autograd, "receiver", 320, 10);
  const SliceId last = f.op(cpu, "last", 340, 10);
  f.flow("ac2g", 1, cpu, 11, gpu, 20);  // says what the correlation says
  f.flow("async", 9, cpu, 305, autograd, 321);
  f.flow("async", 9, cpu, 330, cpu, 345);  // the same id later; it starts where nothing is
  const Run run = run_of(f);
  CHECK(linked(run, 0, kernel) == std::vector<Linked>{{LinkKind::launch, 0, call}});
  CHECK(linked(run, 0, call) == std::vector<Linked>{{LinkKind::kernel, 0, kernel}});
  CHECK(linked(run, 0, forward) ==
        std::vector<Linked>{{LinkKind::kernel, 0, kernel}, {LinkKind::backward, 0, backward}});
  CHECK(linked(run, 0, backward) == std::vector<Linked>{{LinkKind::forward, 0, forward}});
  CHECK(linked(run, 0, inner) == std::vector<Linked>{{LinkKind::forward, 0, forward}});
  CHECK(linked(run, 0, sender) == std::vector<Linked>{{LinkKind::arrow_to, 0, receiver}});
  CHECK(linked(run, 0, receiver) == std::vector<Linked>{{LinkKind::arrow_from, 0, sender}});
  CHECK(linked(run, 0, last).empty());
}

TEST_CASE("slice links: there may be more than are told") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  const SliceId call = f.launch(cpu, "cudaGraphLaunch", 10, 5, 1);
  for (int i = 0; i < 7; i++) f.kernel(gpu, "k", 20 + 10 * i, 5, 1);
  const Run run = run_of(f);
  const Links links = serve::links_of(run, 0, call, 3);
  CHECK(links.found.size() == 3);
  CHECK(links.total == 7);
}

TEST_CASE("slice links: the same collective of the other ranks") {
  Run run;
  for (int rank = 0; rank < 3; rank++) {
    TraceFixture f;
    f.trace.rank.rank = rank;
    const TrackId gpu = f.stream("7");
    for (int i = 0; i < 2; i++) {
      const SliceId id = f.kernel(gpu, "ncclDevKernel_AllReduce", 1000 * i + 10 * rank, 100 - 10 * rank);
      f.collective(id, "allreduce", 1 << 20, 3);
    }
    derive::derive(f.trace, {});
    run.traces.push_back(std::move(f.trace));
  }
  derive::derive_run(run, 1);
  const auto second = static_cast<SliceId>(1);
  CHECK(linked(run, 1, second) ==
        std::vector<Linked>{{LinkKind::collective, 0, second}, {LinkKind::collective, 2, second}});
}

TEST_CASE("stack: of the slice itself, of its launch, of its forward operator; none is none") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), autograd = f.host("2"), gpu = f.stream("7");
  f.slice(cpu, "python_function", "train.py(10): main", 0, 1000);
  f.slice(cpu, "python_function", "model.py(20): forward", 10, 500);
  const SliceId forward = f.op(cpu, "aten::mm", 20, 100, {.sequence = 5, .fwd_thread = 0});
  const SliceId call = f.launch(cpu, "cudaLaunchKernel", 30, 5, 1);
  const SliceId kernel = f.kernel(gpu, "gemm", 40, 50, 1);
  const SliceId backward = f.op(autograd, "MmBackward0", 600, 50, {.sequence = 5, .fwd_thread = 1});
  f.launch(autograd, "cudaLaunchKernel", 610, 5, 2);
  const SliceId other = f.kernel(gpu, "gemm_grad", 640, 50, 2);
  const SliceId lost = f.kernel(gpu, "lost", 800, 50);
  const Run run = run_of(f);
  const Trace& trace = run.traces[0];
  const std::vector<std::string_view> frames{"model.py(20): forward", "train.py(10): main"};
  const auto stack = [&](SliceId slice) { return serve::stack_of(trace, slice); };
  CHECK(stack(forward).frames == frames);
  CHECK(stack(forward).of == forward);
  CHECK(stack(kernel).frames == frames);
  CHECK(stack(kernel).of == call);
  CHECK(stack(backward).of == forward);
  CHECK(stack(other).frames == frames);
  CHECK(stack(other).of == forward);
  CHECK(stack(lost).frames.empty());
  CHECK(stack(lost).of == SliceId::none);
}

TEST_CASE("stack: as a text of the operator, where no frames are slices") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "aten::linear", 0, 100);
  const SliceId inner = f.op(cpu, "aten::mm", 10, 50);
  f.trace.ops.call_stack = {};
  f.trace.ops.call_stack.push_back(f.trace.strings.intern("a.py(1): f;;b.py(2): g;"));
  f.trace.ops.call_stack.push_back(StringId::none);
  const Run run = run_of(f);
  CHECK(serve::stack_of(run.traces[0], inner).frames == std::vector<std::string_view>{"a.py(1): f", "b.py(2): g"});
}

}  // namespace
}  // namespace stepscope
