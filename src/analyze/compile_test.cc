#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

void compilation(TraceFixture& f, TrackId cpu, Ns start, Ns duration, const std::string& id) {
  f.op(cpu, "entire_frame_compile", start, duration);
  f.annotation(cpu, "entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=" + id, start + 1, 1);
  f.op(cpu, "_compile.compile_inner (dynamo_timed)", start + 2, duration - 4);
  f.op(cpu, "GraphLowering.run (dynamo_timed)", start + 10, 20);
}

// One function with a graph break, called twice; the second time its first part is compiled again.
Run broken_graph() {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.annotation(cpu, "ProfilerStep#0", 0, 10'000);
  compilation(f, cpu, 0, 1'000, "0/0");
  f.op(cpu, "Torch-Compiled Region: 0/0", 1'000, 2'000);
  f.launch(cpu, "cuLaunchKernel", 1'100, 10, 1);
  compilation(f, cpu, 1'500, 500, "1/0");
  f.op(cpu, "Torch-Compiled Region: 1/0", 2'500, 400);
  f.annotation(cpu, "## Call CompiledFxGraph fabc ##", 2'510, 300);
  f.launch(cpu, "cuLaunchKernel", 2'600, 10, 2);
  compilation(f, cpu, 5'000, 600, "0/1");
  f.op(cpu, "Torch-Compiled Region: 0/1", 6'000, 1'000);
  f.op(cpu, "Torch-Compiled Region: 1/0", 6'500, 400);
  f.kernel(gpu, "triton_poi_fused_add_relu_0", 1'200, 70, 1);
  f.kernel(gpu, "triton_poi_fused_add_relu_0", 2'700, 50, 2);
  return run_of(std::move(f));
}

TEST_CASE("compile: compilations, recompilations and graph breaks") {
  const Answer answer = ask(broken_graph(), "compile");
  CHECK(ns(answer, "compilation_count") == 3);
  CHECK(ns(answer, "recompilation_count") == 1);
  CHECK(ns(answer, "compile_ns") == 2'100);
  CHECK(ns(answer, "graph_break_count") == 2);
  const Table& all = *answer.table("compilations");
  REQUIRE(all.rows.size() == 3);
  CHECK(all.rows[2][1] == Value(Ns{0}));
  CHECK(all.rows[2][2] == Value(Ns{1}));
  CHECK(all.rows[2][4] == Value(Ns{600}));
  CHECK(cell(answer, "stages", "stage", "GraphLowering.run", "total_ns") == Value(Ns{60}));
  CHECK(cell(answer, "regions", "region", "1/0", "graph_breaks") == Value(Ns{2}));
  CHECK(cell(answer, "regions", "region", "0/0", "device_ns") == Value(Ns{70}));  // not what the inner one launched
  CHECK(cell(answer, "regions", "region", "1/0", "device_ns") == Value(Ns{50}));
  CHECK(cell(answer, "graphs", "graph", "fabc", "device_ns") == Value(Ns{50}));
  CHECK(cell(answer, "fused_kernels", "kernel", "triton_poi_fused_add_relu_0", "ops") ==
        Value(std::string("add, relu")));
  REQUIRE(answer.findings.size() == 2);
  CHECK(answer.findings[0].id == "recompilations");
  CHECK(answer.findings[1].id == "graph_breaks");
}

TEST_CASE("compile: a recording without any of it says so") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  const Answer answer = ask(run_of(std::move(f)), "compile");
  CHECK(unknown(answer, "compilation_count"));
  CHECK(unknown(answer, "graph_break_count"));
  CHECK(answer.findings.empty());
}

TEST_CASE("compile: older torch does not say which frame") {
  TraceFixture f;
  f.op(f.host("1"), "_compile.<locals>.compile_inner (dynamo_timed)", 0, 100);
  const Answer answer = ask(run_of(std::move(f)), "compile");
  CHECK(ns(answer, "compilation_count") == 1);
  CHECK(unknown(answer, "recompilation_count"));
}

}  // namespace
}  // namespace stepscope
