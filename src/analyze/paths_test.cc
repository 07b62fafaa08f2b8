// annotations and stacks: two answers over one tree of paths (model/path_tree_test.cc has its figures).
#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

TEST_CASE("annotations: nested paths, per whole step, and the lanes of the device") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  for (int step = 0; step < 3; step++) {
    const Ns t = step * 1'000;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), t, 900);
    for (int i = 0; i < 2; i++) f.annotation(cpu, "block", t + 100 * i, 50);
    f.launch(cpu, "cudaLaunchKernel", t + 110, 5, step + 1);
    f.slice(gpu, "gpu_user_annotation", "block", t + 200, 300);
    f.kernel(gpu, "k", t + 200, 100, step + 1);
    f.kernel(gpu, "k", t + 450, 50);
  }
  const Answer answer = ask(run_of(std::move(f)), "annotations");
  const std::string block = "ProfilerStep#*/block";
  CHECK(ns(answer, "call_count") == 9);
  CHECK(ns(answer, "work_outside_count") == 3);  // launches that nobody recorded
  CHECK(cell(answer, "paths", "path", block, "calls") == Value(Ns{6}));
  CHECK(cell(answer, "paths", "path", block, "calls_per_step") == Value(2.0));
  CHECK(cell(answer, "paths", "path", block, "host_ns_per_step") == Value(100.0));
  CHECK(cell(answer, "paths", "path", block, "device_ns") == Value(Ns{300}));
  CHECK(cell(answer, "on_device", "name", "block", "total_ns") == Value(Ns{900}));
  CHECK(cell(answer, "on_device", "name", "block", "busy_ns") == Value(Ns{450}));
}

TEST_CASE("stacks: functions with file and line, and a tree") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.slice(cpu, "python_function", "train.py(3): main", 0, 1'000);
  f.slice(cpu, "python_function", "my (odd) dir/net.py(12): forward", 100, 500);
  f.slice(cpu, "python_function", "nn.Module: Linear_0", 200, 300);
  f.op(cpu, "aten::mm", 210, 100);
  f.launch(cpu, "cudaLaunchKernel", 220, 5, 1);
  f.kernel(gpu, "k", 400, 70, 1);
  const Answer answer = ask(run_of(std::move(f)), "stacks");
  CHECK(ns(answer, "call_count") == 3);
  CHECK(cell(answer, "functions", "function", "forward", "file") == Value(std::string("my (odd) dir/net.py")));
  CHECK(cell(answer, "functions", "function", "forward", "line") == Value(Ns{12}));
  CHECK(cell(answer, "functions", "function", "forward", "self_ns") == Value(Ns{200}));
  CHECK(cell(answer, "functions", "function", "main", "device_ns") == Value(Ns{70}));
  CHECK(cell(answer, "functions", "function", "main", "device_self_ns") == Value(Ns{0}));
  CHECK(cell(answer, "functions", "function", "nn.Module: Linear_0", "file") == Value());
  CHECK(cell(answer, "functions", "function", "nn.Module: Linear_0", "self_ns") == Value(Ns{300}));
  CHECK(cell(answer, "tree", "name", "nn.Module: Linear_0", "depth") == Value(Ns{2}));
  CHECK(cell(answer, "tree", "name", "train.py(3): main", "parent") == Value());
}

TEST_CASE("stacks: our own thread that keeps the time is left out") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), timer = f.host("2"), other = f.host("3");
  f.slice(cpu, "python_function", "train.py(3): main", 0, 1'000);
  for (const TrackId thread : {timer, other}) f.slice(thread, "python_function", "threading.py(9): run", 0, 1'000);
  f.slice(timer, "python_function", "/x/hooks/_stepscope_hooks/timer.py(71): run", 0, 990);
  f.slice(timer, "python_function", "threading.py(5): wait", 0, 980);
  f.slice(other, "python_function", "threading.py(5): wait", 0, 900);
  const Answer answer = ask(run_of(std::move(f)), "stacks");
  CHECK(ns(answer, "call_count") == 4);  // two of threading's run()
  CHECK(cell(answer, "functions", "function", "wait", "total_ns") == Value(Ns{900}));
  CHECK(cell(answer, "functions", "function", "run", "total_ns") == Value(Ns{1'010}));
  CHECK(answer.table("functions")->rows.size() == 3);
  CHECK(answer.table("tree")->rows.size() == 3);
}

TEST_CASE("stacks: what is too small for a picture is left out of the tree and said") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.slice(cpu, "python_function", "a.py(1): big", 0, 1'000'000);
  f.slice(cpu, "python_function", "a.py(2): tiny", 10, 100);
  const Answer answer = ask(run_of(std::move(f)), "stacks");
  CHECK(answer.table("tree")->rows.size() == 1);
  CHECK(answer.table("functions")->rows.size() == 2);
  CHECK(answer.notes.size() == 1);
}

TEST_CASE("annotations and stacks: nothing recorded is unknown") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  const Run run = run_of(std::move(f));
  CHECK(unknown(ask(run, "annotations"), "call_count"));
  CHECK(unknown(ask(run, "stacks"), "call_count"));
}

}  // namespace
}  // namespace stepscope
