#include "model/path_tree.h"

#include <doctest/doctest.h>

#include <array>

#include "derive/derive.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

PathTree tree_of(TraceFixture& f, SliceKind kind) {
  REQUIRE(derive::derive(f.trace, {}));
  const std::array kinds{kind};
  return path_tree(f.trace, kinds);
}

const PathNode& node(const TraceFixture& f, const PathTree& tree, std::string_view path) {
  for (std::uint32_t i = 0; i < tree.nodes.size(); i++) {
    if (tree.path(f.trace, i, "/") == path) return tree.nodes[i];
  }
  FAIL("no path ", path);
  return tree.nodes.front();
}

TEST_CASE("path tree: calls that lie very deep count as part of the one around them") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  constexpr int kCalls = 20'000;
  for (int i = 0; i < kCalls; i++) f.slice(cpu, "user_annotation", "r" + std::to_string(i), i, 2 * kCalls - 2 * i);
  const PathTree tree = tree_of(f, SliceKind::user_annotation);
  CHECK(tree.nodes.size() == 256);
  CHECK(tree.too_deep == kCalls - 256);
  CHECK(tree.nodes.back().self_ns == tree.nodes.back().total_ns);
}

TEST_CASE("path tree: names of steps and addresses are one; other slices in between do not break a path") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  for (int step = 0; step < 2; step++) {
    const std::int64_t t = step * 1'000;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), t, 1'000);
    f.op(cpu, "aten::linear", t + 50, 500);
    f.annotation(cpu, "inner", t + 100, 200);
    f.launch(cpu, "cudaLaunchKernel", t + 110, 5, 10 * step + 1);
    f.launch(cpu, "cudaLaunchKernel", t + 400, 5, 10 * step + 2);
    f.kernel(gpu, "k", t + 500, 100, 10 * step + 1);
    f.kernel(gpu, "k", t + 550, 100, 10 * step + 2);  // overlaps: the union is 150
  }
  const PathTree tree = tree_of(f, SliceKind::user_annotation);
  CHECK(tree.nodes.size() == 2);
  const PathNode& outer = node(f, tree, "ProfilerStep#*");
  CHECK(outer.calls == 2);
  CHECK(outer.total_ns == 2'000);
  CHECK(outer.self_ns == 1'600);
  CHECK(outer.device_ns == 300);
  CHECK(outer.device_self_ns == 200);
  const PathNode& inner = node(f, tree, "ProfilerStep#*/inner");
  CHECK(inner.calls == 2);
  CHECK(inner.self_ns == 400);
  CHECK(inner.device_ns == 200);
  CHECK(tree.work_outside == 0);
}

TEST_CASE("path tree: recursion is marked, children that overlap count once") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.slice(cpu, "python_function", "a.py(1): f", 0, 100);
  f.slice(cpu, "python_function", "a.py(9): g", 10, 80);
  f.slice(cpu, "python_function", "a.py(1): f", 20, 30);
  f.slice(cpu, "python_function", "<built-in method mm of type object at 0x7f00aB>", 20, 10);
  const PathTree tree = tree_of(f, SliceKind::python_function);
  CHECK_FALSE(node(f, tree, "a.py(1): f").recursive);
  CHECK(node(f, tree, "a.py(1): f/a.py(9): g/a.py(1): f").recursive);
  CHECK(node(f, tree, "a.py(1): f").self_ns == 20);
  CHECK(node(f, tree, "a.py(1): f/a.py(9): g").self_ns == 50);
  CHECK(node(f, tree, "a.py(1): f/a.py(9): g/a.py(1): f/<built-in method mm of type object>").total_ns == 10);
}

TEST_CASE("path tree: backward work on autograd's thread counts where the step's thread stands") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), autograd = f.host("2"), gpu = f.stream("7");
  f.annotation(cpu, "ProfilerStep#0", 0, 1'000);
  f.annotation(cpu, "## backward ##", 100, 500);
  f.op(autograd, "autograd::engine::evaluate_function: MmBackward0", 200, 100);
  f.launch(autograd, "cudaLaunchKernel", 210, 5, 1);
  f.kernel(gpu, "k", 300, 50, 1);
  f.op(autograd, "aten::copy_", 700, 10);  // not backward: it stays outside
  f.launch(autograd, "cudaLaunchKernel", 701, 5, 2);
  f.kernel(gpu, "k", 800, 50, 2);
  const PathTree tree = tree_of(f, SliceKind::user_annotation);
  CHECK(node(f, tree, "ProfilerStep#*/## backward ##").device_ns == 50);
  CHECK(tree.work_outside == 1);
}

}  // namespace
}  // namespace stepscope
