// Linking execution traces with timelines made by hand: every kind of evidence, and what must not be linked.
#include "graph/link.h"

#include <doctest/doctest.h>

#include "base/corpus_fixture.h"
#include "derive/derive.h"
#include "graph/name_alignment.h"
#include "graph/nodes_fixture.h"
#include "model/trace_fixture.h"
#include "session/session.h"

namespace stepscope::graph {
namespace {

std::string aligned(const std::vector<Called>& part, const std::vector<Called>& whole) {
  std::string text;
  for (const CalledPair& pair : align_names(part, whole))
    text += std::to_string(pair.part) + (pair.by_sequence ? "=" : "~") + std::to_string(pair.whole) + " ";
  return text;
}

TEST_CASE("names align with holes on both sides") {
  const auto names = [](std::initializer_list<std::uint32_t> ids) {
    std::vector<Called> calls;
    for (const std::uint32_t id : ids) calls.push_back({id, kAbsent});
    return calls;
  };
  CHECK(aligned(names({}), names({1, 2})).empty());
  CHECK(aligned(names({1, 2, 3}), names({1, 2, 3})) == "0~0 1~1 2~2 ");
  CHECK(aligned(names({1, 2, 3, 4}), names({1, 9, 2, 4})) == "0~0 1~2 3~3 ");
  CHECK(aligned(names({5, 1, 2}), names({1, 2, 7})) == "1~0 2~1 ");
  CHECK(aligned(names({1}), names({2})).empty());
}

TEST_CASE("sequence numbers say which of many equal turns it is") {
  std::vector<Called> whole;
  for (std::int64_t turn = 0; turn < 50; turn++) {
    whole.push_back({1, turn * 2});
    whole.push_back({2, kAbsent});
    whole.push_back({3, turn * 2 + 1});
  }
  CHECK(aligned({{1, 60}, {2, kAbsent}, {3, 61}, {1, 62}, {2, kAbsent}}, whole) == "0=90 1~91 2=92 3=93 4~94 ");
  // The numbers of another recording fit no turn, and the names fit all of them.
  CHECK(aligned({{1, 600}, {2, kAbsent}}, whole).empty());
}

TEST_CASE("threads that differ too much align nowhere") {
  std::vector<Called> part, whole;
  for (std::uint32_t at = 0; at < 3000; at++) {
    part.push_back({at, kAbsent});
    whole.push_back({at + 5000, kAbsent});
  }
  CHECK(align_names(part, whole).empty());
}

TEST_CASE("record function ids link across threads; a wrong name does not") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), worker = f.host("2"), gpu = f.stream("7");
  const auto numbered = [&](SliceId, std::int64_t id) {
    f.trace.ops.record_function_id.set(f.trace.ops.size() - 1, id);
  };
  numbered(f.op(cpu, "c10d::allreduce_", 0, 100), 11);
  f.launch(cpu, "cudaLaunchKernel", 10, 5, 1);
  numbered(f.op(worker, "gloo:all_reduce", 50, 100), 12);
  numbered(f.op(cpu, "aten::add", 200, 10), 13);
  f.kernel(gpu, "copy", 20, 10, 1);
  f.kernel(gpu, "lost", 60, 10, 99);
  REQUIRE(derive::derive(f.trace, {}));

  Nodes n;
  n.thread(2, 1);
  n.op(3, 2, "c10d::allreduce_", 1).record_function_id = 11;
  n.op(4, 3, "gloo:all_reduce", 1).record_function_id = 12;
  n.op(5, 2, "aten::mul", 1).record_function_id = 13;
  const Link link = find_link(n.made(), f.trace);
  CHECK(link.operators == 3);
  CHECK(link.nodes[static_cast<std::size_t>(LinkEvidence::record_function_id)] == 2);
  CHECK(link.other_name == 1);
  CHECK(link.slice[1] == static_cast<SliceId>(0));
  CHECK(link.slice[2] == static_cast<SliceId>(2));
  CHECK(link.device_linked == 1);
  CHECK(link.device_unlinked == 1);
  CHECK(link.node_of[0] == 1);
}

TEST_CASE("without ids the order of names links, thread by thread, and steps may be numbered differently") {
  TraceFixture f;
  const TrackId cpu = f.host("100"), other = f.host("200");
  f.annotation(cpu, "ProfilerStep#7", 0, 100);
  f.op(cpu, "aten::mm", 10, 10);
  f.op(cpu, "aten::mm", 30, 10);
  f.op(other, "MmBackward0", 50, 20);
  REQUIRE(derive::derive(f.trace, {}));
  Nodes n;
  n.op(3, 1, "ProfilerStep#6", 1);
  n.op(4, 3, "aten::mm", 1);
  n.op(5, 3, "aten::mm", 1);
  n.op(6, 3, "aten::relu", 1);
  n.op(8, 1, "MmBackward0", 2);
  const Link link = find_link(n.made(), f.trace);
  CHECK(link.operators == 5);
  CHECK(link.nodes[static_cast<std::size_t>(LinkEvidence::name_order)] == 4);
  CHECK(link.slice[3] == SliceId::none);
  CHECK(covers_enough(link, n.made(), f.trace));
}

TEST_CASE("two files that do not belong together are refused with the reason") {
  TraceFixture f;
  f.op(f.host("1"), "aten::conv2d", 0, 10);
  REQUIRE(derive::derive(f.trace, {}));
  Nodes n;
  n.op(3, 1, "aten::mm", 1);
  n.op(4, 1, "aten::conv2d", 1);
  n.op(5, 1, "aten::relu", 1);
  const auto judged = covers_enough(find_link(n.made(), f.trace), n.made(), f.trace);
  REQUIRE_FALSE(judged);
  CHECK(judged.error().message.find("of 3 operators") != std::string::npos);
  CHECK(judged.error().hint.find("--with execution-trace") != std::string::npos);
  const TraceFixture nothing;
  CHECK_FALSE(covers_enough(find_link(n.made(), nothing.trace), n.made(), nothing.trace));
}

TEST_CASE("one record function id of two nodes links once") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  f.trace.ops.record_function_id.set(0, 5);
  REQUIRE(derive::derive(f.trace, {}));
  Nodes n;
  n.op(3, 1, "aten::mm", 1).record_function_id = 5;
  n.op(4, 1, "aten::mm", 1).record_function_id = 5;
  CHECK(find_link(n.made(), f.trace).linked() == 1);
}

TEST_CASE("pairs of the corpus link as far as they belong together") {
  if (!corpus_fixture::has_corpus()) return;
  const std::string corpus = corpus_fixture::corpus().string();
  const auto linked = [&](const std::string& graph, const std::string& timeline) {
    const std::vector<std::string> paths{corpus + graph, corpus + timeline};
    session::OpenOptions options;
    options.use_cache = false;
    const auto run = session::open(paths, options);
    REQUIRE(run);
    REQUIRE(run->traces.size() == 2);
    const Link link = find_link(run->traces[1], run->traces[0]);
    return std::pair(link.linked(), link.operators);
  };
  CHECK(linked("/param_et/linear_et.json.gz", "/param_et/linear_kineto.json.gz") == std::pair(928ul, 928ul));
  CHECK(linked("/hta/execution_trace/benchmark_simple_add_et.json.gz",
               "/hta/execution_trace/benchmark_simple_add_trace.json.gz") == std::pair(36ul, 36ul));
  CHECK(linked("/param_et/resnet_et.json.gz", "/param_et/resnet_kineto.json.gz").first == 0);
}

}  // namespace
}  // namespace stepscope::graph
