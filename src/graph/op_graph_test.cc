// Graphs of operations of traces made by hand, worked out on paper: one for each kind of evidence.
#include "graph/op_graph.h"

#include <doctest/doctest.h>

#include "derive/derive.h"
#include "graph/nodes_fixture.h"
#include "model/trace_fixture.h"

namespace stepscope::graph {
namespace {

const std::string kGemm = "ampere_sgemm_128x64_tn";

OpGraph graph_of(TraceFixture& f) {
  REQUIRE(derive::derive(f.trace, {}));
  auto made = op_graph(nullptr, &f.trace);
  REQUIRE(made);
  for (const OpEdge& edge : made->edges) REQUIRE(edge.from < edge.to);
  return *std::move(made);
}

// "NAME.PIECE START+DURATION < evidence NAME.PIECE, …", a line for each node; program order is left out.
std::string text_of(const OpGraph& graph) {
  const auto label = [&](std::uint32_t at) {
    return std::string(graph.name(graph.nodes[at])) + "." + std::to_string(graph.nodes[at].piece);
  };
  std::string text;
  for (std::uint32_t at = 0; at < graph.nodes.size(); at++) {
    const OpNode& node = graph.nodes[at];
    text += label(at) + " " + std::to_string(node.start_ns) + "+" + std::to_string(node.dur_ns);
    for (const OpEdge& edge : graph.edges) {
      if (edge.to == at && edge.evidence != OpEvidence::program_order)
        text += " < " + std::string(to_string(edge.evidence)) + " " + label(edge.from);
    }
    text += '\n';
  }
  return text;
}

TEST_CASE("operators have exclusive times, what is between them is a node") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "aten::linear", 0, 100);
  f.op(cpu, "aten::t", 10, 20);
  f.op(cpu, "aten::addmm", 40, 50);
  f.op(cpu, "aten::relu", 130, 10);
  const OpGraph graph = graph_of(f);
  CHECK(text_of(graph) ==
        "aten::linear.0 0+30\n"
        "aten::t.0 10+20\n"
        "aten::addmm.0 40+50\n"
        "host gap.0 100+30\n"
        "aten::relu.0 130+10\n");
  CHECK(graph.nodes[1].caller == 0);
  CHECK(graph.nodes[4].caller == kNoNode);
  CHECK(graph.edges_dropped == 0);
}

TEST_CASE("a call that waits for its own kernel goes on in a second piece") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::mm", 0, 20);
  f.launch(cpu, "cudaLaunchKernel", 5, 5, 1);
  f.kernel(gpu, kGemm, 30, 100, 1);
  f.op(cpu, "aten::item", 40, 200);
  f.launch(cpu, "cudaMemcpyAsync", 50, 10, 2);
  f.device(gpu, "gpu_memcpy", "Memcpy DtoH", 140, 10, 2);
  f.launch(cpu, "cudaStreamSynchronize", 60, 95, 3);
  const OpGraph graph = graph_of(f);
  CHECK(text_of(graph) ==
        "aten::mm.0 0+20\n"
        "host gap.0 20+20\n"
        "ampere_sgemm_128x64_tn.0 30+100 < launch aten::mm.0\n"
        "aten::item.0 40+20\n"
        "Memcpy DtoH.0 140+10 < stream order ampere_sgemm_128x64_tn.0 < launch aten::item.0\n"
        "aten::item.1 150+90 < sync call Memcpy DtoH.0\n");
}

TEST_CASE("autograd's thread takes over and hands back; the waits of both are edges") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), autograd = f.host("2");
  f.op(cpu, "aten::mm", 0, 20, {.sequence = 5, .fwd_thread = 0});
  f.op(autograd, "MmBackward0", 50, 30, {.sequence = 5, .fwd_thread = 1});
  f.op(cpu, "aten::add", 100, 10);
  f.op(cpu, "aten::mm", 120, 20, {.sequence = 6, .fwd_thread = 0});
  f.op(autograd, "MmBackward0", 200, 30, {.sequence = 6, .fwd_thread = 1});
  f.op(cpu, "aten::add", 240, 10);
  const OpGraph graph = graph_of(f);
  CHECK(text_of(graph) ==
        "aten::mm.0 0+20\n"
        "host gap.0 20+30\n"
        "MmBackward0.0 50+30 < autograd aten::mm.0 < hand over host gap.0\n"
        "host gap.0 80+20 < hand back MmBackward0.0\n"
        "aten::add.0 100+10\n"
        "host gap.0 110+10\n"
        "aten::mm.0 120+20\n"
        "host gap.0 140+60\n"
        "MmBackward0.0 200+30 < autograd aten::mm.0 < hand over host gap.0\n"
        "host gap.0 230+10 < hand back MmBackward0.0\n"
        "aten::add.0 240+10\n");
}

TEST_CASE("work on a worker's thread follows the call with its record function id") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), worker = f.host("2");
  const auto numbered = [&](SliceId, std::int64_t id) {
    f.trace.ops.record_function_id.set(f.trace.ops.size() - 1, id);
  };
  numbered(f.op(worker, "gloo:broadcast", 5, 10), 9);
  numbered(f.op(cpu, "c10d::allreduce_", 20, 30), 11);
  numbered(f.op(worker, "gloo:all_reduce", 40, 100, {.dims = "[[10]]", .types = R"(["float"])"}), 12);
  REQUIRE(derive::derive(f.trace, {}));
  Nodes n;
  n.op(3, 1, "gloo:broadcast", 1).record_function_id = 9;
  n.op(4, 1, "c10d::allreduce_", 1).record_function_id = 11;
  GraphNode& reduce = n.add(5, 4, "gloo:all_reduce", NodeKind::collective, 1);
  reduce.record_function_id = 12;
  reduce.input_dims = "[[10,4]]";
  reduce.input_types = R"x(["Tensor(float)"])x";
  const auto graph = op_graph(&n.made(), &f.trace);
  REQUIRE(graph);
  CHECK(text_of(*graph) ==
        "gloo:broadcast.0 5+10\n"
        "c10d::allreduce_.0 20+20\n"
        "c10d::allreduce_.1 40+10\n"
        "gloo:all_reduce.0 40+100 < record function c10d::allreduce_.0\n");
  REQUIRE(graph->communications.size() == 1);
  CHECK(graph->communications[0].kind == CollectiveKind::all_reduce);
  CHECK(graph->communications[0].bytes == 160);
  CHECK(graph->nodes[3].kind == OpKind::collective);
}

TEST_CASE("a call that communicates and the worker that did it are one communication") {
  Nodes n;
  GraphNode& call = n.op(3, 1, "c10d::allreduce_", 1);
  call.input_dims = "[[[10],[2,3]],[]]";
  call.input_types = R"x(["GenericList[Tensor(float),Tensor(float)]","Int"])x";
  const auto alone = op_graph(&n.made(), nullptr);
  REQUIRE(alone);
  REQUIRE(alone->communications.size() == 1);
  CHECK(alone->communications[0].bytes == 64);
  CHECK(alone->nodes[0].kind == OpKind::collective);

  Nodes late;  // the worker began when the call had returned
  late.op(3, 1, "c10d::allreduce_", 1);
  late.op(4, 1, "c10d::allreduce_", 1);
  late.add(5, 1, "gloo:all_reduce", NodeKind::collective, 1);
  const auto joined = op_graph(&late.made(), nullptr);
  REQUIRE(joined);
  CHECK(joined->nodes[0].kind == OpKind::host);
  CHECK(joined->nodes[1].kind == OpKind::collective);
  CHECK(joined->nodes[2].kind == OpKind::collective);
}

TEST_CASE("an execution trace alone has order and no times") {
  Nodes n;
  n.thread(2, 1);
  n.op(3, 2, "aten::mm", 1).sequence = 5;
  n.op(4, 3, "aten::t", 1);
  GraphNode& backward = n.op(8, 2, "MmBackward0", 2);
  backward.sequence = 5;
  backward.fwd_thread = 1;
  n.op(9, 2, "aten::add", 1);
  const auto graph = op_graph(&n.made(), nullptr);
  REQUIRE(graph);
  CHECK_FALSE(graph->timed);
  REQUIRE(graph->nodes.size() == 4);
  for (const OpNode& node : graph->nodes) CHECK(node.dur_ns == 0);
  CHECK(graph->edges_by_evidence[static_cast<std::size_t>(OpEvidence::autograd)] == 1);
  CHECK(graph->edges_by_evidence[static_cast<std::size_t>(OpEvidence::hand_back)] == 1);
  CHECK(graph->edges_dropped == 0);
}

TEST_CASE("an execution trace whose callers and dependencies run in a circle still makes a graph without one") {
  Nodes n;
  n.op(3, 4, "a", 1).depends_on = {4};
  n.op(4, 3, "b", 1).depends_on = {3, 77};
  const auto graph = op_graph(&n.made(), nullptr);
  REQUIRE(graph);
  CHECK(graph->nodes.size() == 2);
  CHECK(graph->edges_dropped == 1);
  for (std::uint32_t at = 0; at < 2; at++) CHECK((graph->nodes[at].caller == kNoNode || graph->nodes[at].caller < at));
  for (const OpEdge& edge : graph->edges) CHECK(edge.from < edge.to);
}

}  // namespace
}  // namespace stepscope::graph
