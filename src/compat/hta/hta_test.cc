#include <doctest/doctest.h>

#include "compat/hta/call_stack.h"
#include "compat/hta/critical_path_analysis/graph.h"
#include "compat/hta/names.h"
#include "compat/hta/stats.h"
#include "compat/hta/table.h"
#include "model/trace_fixture.h"

using namespace stepscope;               // NOLINT(google-build-using-namespace)
using namespace stepscope::compat::hta;  // NOLINT(google-build-using-namespace)

TEST_CASE("hta: kernel classes are those of the start of a name") {
  CHECK(kernel_type("ncclDevKernel_AllReduce") == KernelType::communication);
  CHECK(kernel_type("hipMemcpyAsync") == KernelType::communication);
  CHECK(kernel_type("Memcpy DtoH (Device -> Pinned)") == KernelType::memory);
  CHECK(kernel_type("my_dma_kernel") == KernelType::other);
  CHECK(kernel_type("deep_ep::intranode::dispatch") == KernelType::computation);
  CHECK(short_name("void at::f<float, (int)2>(float*)") == "at::f");
}

TEST_CASE("hta: fractions of a microsecond are rounded inwards") {
  TraceFixture f;
  const TrackId host = f.host("1");
  f.slice(host, "cpu_op", "a", 10'200, 300);    // within one microsecond: 11 to 10
  f.slice(host, "cpu_op", "b", 20'000, 2'500);  // 20 to 22
  const std::vector<Row> rows = parsed_rows(f.trace);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].ts == 11);
  CHECK(rows[0].dur == -1);
  CHECK(rows[1].dur == 2);
}

TEST_CASE("hta: the last of several steps is dropped unless it is asked for") {
  Run run;
  {
    TraceFixture f;
    const TrackId host = f.host("1");
    f.slice(host, "user_annotation", "ProfilerStep#1", 0, 10'000);
    f.slice(host, "cpu_op", "first", 1'000, 1'000);
    f.slice(host, "user_annotation", "ProfilerStep#2", 10'000, 10'000);
    f.slice(host, "cpu_op", "second", 11'000, 1'000);
    run.traces.push_back(std::move(f.trace));
  }
  CHECK((*make_tables(run, false))->ranks.front().rows().size() == 2);
  CHECK((*make_tables(run, true))->ranks.front().rows().size() == 4);
}

TEST_CASE("hta: a correlation id that many calls and kernels share is refused, not multiplied") {
  Run run;
  {
    TraceFixture f;
    const TrackId host = f.host("1"), stream = f.stream("7");
    f.slice(host, "user_annotation", "ProfilerStep#1", 0, 10'000);
    f.slice(host, "user_annotation", "ProfilerStep#2", 10'000, 10'000);
    for (int i = 0; i < 200; i++) {
      f.launch(host, "cudaLaunchKernel", 1'000, 1'000, 5);
      f.kernel(stream, "k", 3'000, 1'000, 5);
    }
    run.traces.push_back(std::move(f.trace));
  }
  const auto tables = make_tables(run, true);
  REQUIRE(!tables);
  CHECK(tables.error().kind == ErrorKind::too_large);
}

TEST_CASE("hta: the call stack closes what was opened last") {
  const std::vector<Row> rows{
      {.ts = 0, .dur = 10, .index = 0}, {.ts = 2, .dur = 3, .index = 1}, {.ts = 5, .dur = 5, .index = 2}};
  const CallStack stack(rows);
  CHECK(stack.roots() == std::vector<std::uint32_t>{0});
  CHECK(stack.children(0) == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("hta: of equally long paths the one added first is taken; a cycle has none") {
  PathGraph graph;
  for (const double ts : {0.0, 5.0, 5.0, 9.0}) graph.nodes.push_back({.index = 0, .ts = ts, .is_start = true});
  graph.connect(0, 1, EdgeType::operation);
  graph.connect(0, 2, EdgeType::operation);
  graph.connect(2, 3, EdgeType::operation);
  graph.connect(1, 3, EdgeType::operation);
  const auto path = graph.longest_path();
  REQUIRE(path);
  REQUIRE(path->size() == 2);
  CHECK(graph.edges()[path->front()].to == 2);
  graph.connect(3, 0, EdgeType::dependency);
  CHECK(!graph.longest_path());
}

TEST_CASE("hta: statistics leave out what is not known") {
  const Describe d = describe({1, 2, 3, 4, std::nan("")});
  CHECK(d.count == 4);
  CHECK(d.q25 == 1.75);
  CHECK(d.std == doctest::Approx(1.290994));
  CHECK(rounded(0.125, 2) == 0.12);
}
