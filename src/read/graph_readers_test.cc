// Execution traces and Chakra files: every schema, whole and broken.
#include <doctest/doctest.h>

#include "base/temp_fixture.h"
#include "formats/gzip_text.h"
#include "model/node_graph.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

Result<Trace> read_bytes(std::string_view reader, std::string_view bytes) {
  const TempFile file(bytes);
  auto traces = reader_named(reader)->read(file.path(), {});
  if (!traces) return fail(traces.error());
  return std::move(traces->front());
}

const Issue* issue(const Trace& trace, std::string_view code) {
  for (const Issue& each : trace.issues) {
    if (each.code == code) return &each;
  }
  return nullptr;
}

constexpr std::string_view kFlat =
    R"({"schema": "1.0.1", "pid": 7, "time": "now", "start_ts": 5, "nodes": [)"
    R"({"name": "[pytorch|profiler|execution_graph|thread]", "id": 2, "rf_id": 0, "parent": 1, "seq_id": -1, "tid": 1,)"
    R"( "inputs": [], "input_shapes": [], "input_types": []},)"
    R"({"name": "aten::mm", "id": 4, "rf_id": 3, "parent": 2, "seq_id": 9, "tid": 1, "fw_tid": 0,)"
    R"( "inputs": [[1,2,0,4,4,"cpu"]], "input_shapes": [[2,2],[2,2]], "input_types": ["Float"]
},)"
    R"({"name": "[pytorch|profiler|execution_graph|process]", "id": 1, "rf_id": 0, "parent": 1}]})";

constexpr std::string_view kAttributes =
    R"({"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [)"
    R"({"id": 3, "name": "## process_group:init ##", "ctrl_deps": 2, "inputs": {"values": ["[{\"pg_name\": \"0\"}]"],)"
    R"( "shapes": [[]], "types": ["String"]}, "attrs": []},)"
    R"({"id": 5, "name": "record_param_comms", "ctrl_deps": 3, "inputs": {"values": [], "shapes": [[8]], "types": []},)"
    R"( "attrs": [{"name": "rf_id", "type": "uint64", "value": 12}, {"name": "collective_name", "type": "string",)"
    R"( "value": "allreduce"}, {"name": "dtype", "type": "string", "value": "Float"}, {"name": "in_msg_nelems",)"
    R"( "type": "uint64", "value": 8}, {"name": "out_msg_nelems", "type": "uint64", "value": 8}, {"name": "pg_name",)"
    R"( "type": "string", "value": "0"}]}]})";

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(unsigned field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string record(const std::string& message) { return varint(message.size()) + message; }
std::string chakra_file() {
  const std::string gemm = number(1, 1) + bytes(2, "gemm") + number(3, 4) + number(6, 10) + number(7, 25);
  const std::string reduce = number(1, 2) + bytes(2, "reduce") + number(3, 7) + bytes(5, varint(1)) +
                             bytes(10, bytes(1, "comm_type") + number(9, 0)) +
                             bytes(10, bytes(1, "comm_size") + number(9, 4096)) +
                             bytes(10, bytes(1, "pg_name") + bytes(29, "3"));
  return record(bytes(1, "0.0.4")) + record(gemm) + record(reduce);
}

}  // namespace

TEST_CASE("an execution trace with flat keys is read") {
  const auto trace = read_bytes("execution_trace", std::string(kFlat));
  REQUIRE(trace);
  const GraphNodes& nodes = trace->nodes;
  REQUIRE(nodes.size() == 3);
  CHECK(trace->strings[nodes.name[1]] == "aten::mm");
  CHECK(nodes.kind[0] == NodeKind::thread);
  CHECK(nodes.kind[1] == NodeKind::host);
  CHECK(nodes.kind[2] == NodeKind::process);
  CHECK(nodes.parent[1] == 2);
  CHECK_FALSE(nodes.parent.has(2));  // the process calls itself
  CHECK(nodes.record_function_id[1] == 3);
  CHECK(nodes.sequence[1] == 9);
  CHECK(trace->strings[nodes.input_dims[1]] == "[[2,2],[2,2]]");
  CHECK(node_depths(nodes)[1] == 2);
  CHECK(trace->issues.empty());
  CHECK(trace->only_graph());
}

TEST_CASE("attributes of newer schemas are read, with the groups") {
  const auto trace = read_bytes("execution_trace", std::string(kAttributes));
  REQUIRE(trace);
  const GraphNodes& nodes = trace->nodes;
  REQUIRE(nodes.size() == 2);
  CHECK(nodes.kind[0] == NodeKind::metadata);
  CHECK(nodes.kind[1] == NodeKind::collective);
  CHECK(nodes.record_function_id[1] == 12);
  CHECK(trace->strings[nodes.collective[1]] == "allreduce");
  CHECK(trace->strings[nodes.group_name[1]] == "0");
  CHECK(nodes.comm_bytes[1] == 32);
  REQUIRE(issue(*trace, "node_parent_missing"));  // node 2 is not in the file
  bool groups = false;
  for (const Metadata& each : trace->metadata)
    groups |= each.key == "process_groups" && each.json == "[{\"pg_name\": \"0\"}]";
  CHECK(groups);
}

TEST_CASE("a cut execution trace gives the nodes before the cut, wherever it is cut") {
  std::size_t nodes = 0;
  for (std::size_t size = kFlat.find('[') + 1; size <= kFlat.size() - 2; size++) {
    const auto trace = read_bytes("execution_trace", std::string(kFlat.substr(0, size)));
    REQUIRE(trace);
    CHECK(trace->nodes.size() >= nodes);
    nodes = trace->nodes.size();
    REQUIRE(issue(*trace, "cut_inside_node"));
    CHECK(issue(*trace, "cut_inside_node")->severity == Severity::lost);
  }
  CHECK(nodes == 3);
}

TEST_CASE("nodes without id, with an id twice and in circles are told") {
  const auto trace = read_bytes(
      "execution_trace",
      R"({"schema": "1.0.1", "nodes": [{"name": "a"}, {"name": "b", "id": 1, "parent": 2}, {"name": "c", "id": 2,)"
      R"( "parent": 1}, {"name": "d", "id": 2}, {"name": "e", "id": 3, "parent": 2}, {"name": oops}]})");
  REQUIRE(trace);
  CHECK(trace->nodes.size() == 3);
  REQUIRE(issue(*trace, "node_without_id"));
  REQUIRE(issue(*trace, "node_id_twice"));
  REQUIRE(issue(*trace, "broken_node"));
  REQUIRE(issue(*trace, "node_caller_cycle"));
  CHECK(issue(*trace, "node_caller_cycle")->count == 2);  // e only hangs below the circle
  CHECK(issue(*trace, "node_caller_cycle")->sentence.find("node 1, node 2") != std::string::npos);
}

TEST_CASE("a Chakra file is read") {
  const std::string text = chakra_file();
  REQUIRE(reader_named("chakra")->recognizes(text));
  const auto trace = read_bytes("chakra", text);
  REQUIRE(trace);
  const GraphNodes& nodes = trace->nodes;
  REQUIRE(nodes.size() == 2);
  CHECK(nodes.kind[0] == NodeKind::compute);
  CHECK(nodes.start_ns[0] == 10'000);
  CHECK(nodes.dur_ns[0] == 25'000);
  CHECK(nodes.kind[1] == NodeKind::collective);
  CHECK(nodes.comm_bytes[1] == 4096);
  CHECK(trace->strings[nodes.collective[1]] == "all_reduce");
  CHECK(trace->strings[nodes.group_name[1]] == "3");
  REQUIRE(nodes.depends_on.size() == 1);
  CHECK(nodes.depends_on[0] == 1);
  CHECK(trace->issues.empty());
}

TEST_CASE("a cut Chakra file gives the records before the cut, with the place") {
  const std::string text = chakra_file();
  const std::size_t first = record(bytes(1, "0.0.4")).size();
  const std::size_t second = text.size() - first;
  for (std::size_t size = first + 1; size < text.size(); size++) {
    const auto trace = read_bytes("chakra", text.substr(0, size));
    if (!trace) {
      CHECK(trace.error().kind == ErrorKind::malformed);
      CHECK(trace.error().offset == first);
      continue;
    }
    CHECK(trace->nodes.size() == 1);
    const bool whole_record = trace->issues.empty();
    CHECK((whole_record || issue(*trace, "broken_record") != nullptr));
  }
  CHECK(second > 0);
}

TEST_CASE("a broken gzip file of nodes is told, with what could be read") {
  for (const std::string reader : {"chakra", "execution_trace"}) {
    CAPTURE(reader);
    const std::string packed = formats::gzip(reader == "chakra" ? chakra_file() : std::string(kFlat));
    const auto whole = read_bytes(reader, packed);
    REQUIRE(whole);
    CHECK(whole->issues.empty());
    const auto cut = read_bytes(reader, std::string_view(packed).substr(0, packed.size() - 4));
    REQUIRE(cut);
    CHECK(cut->nodes.size() == whole->nodes.size());
    CHECK(issue(*cut, "gzip_cut") != nullptr);
    const auto longer = read_bytes(reader, packed + "more");
    REQUIRE(longer);
    CHECK(issue(*longer, "gzip_trailing")->count == 4);
  }
}

TEST_CASE("bytes that are no Chakra file are not taken for one") {
  const Reader& reader = *reader_named("chakra");
  CHECK_FALSE(reader.recognizes(""));
  CHECK_FALSE(reader.recognizes("{\"traceEvents\": []}"));
  CHECK_FALSE(reader.recognizes("SQLite format 3"));
  CHECK_FALSE(reader.recognizes("\x80\x04\x95 pickle"));
  CHECK_FALSE(reader.recognizes(std::string(100, '\0')));
  CHECK_FALSE(reader.recognizes("plain words of text, one after the other"));
}

}  // namespace stepscope::read
