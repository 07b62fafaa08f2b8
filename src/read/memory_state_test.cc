// memory_state.json: a whole one, and what becomes of each thing that can be wrong with it.
#include "read/memory_state.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/temp_fixture.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

// A model of two modules at one moment; `more` stands behind the members that every file has.
std::string text_of(const std::string& trees, const std::string& more = "") {
  const std::string state =
      R"({"step": 3, "micro_batch": 1, "event": "backward", "unix_ns": 77, "trees": {)" + trees + "}}";
  return R"({"schema_version": 1, "kind": "memory_state", "rank": 2, "world_size": 4, "rank_source": "environment",
    "host": "node", "torch": "2.13.0", "device": "cuda:0", "started_unix_ns": 5, "steps_wanted": 5, "steps_done": 4,
    "complete": false, "allocator_reason": null, "notes": ["one thing failed"],
    "nodes": {"path": ["", "a", "a.weight", "b"], "parent": [-1, 0, 1, 0], "class": ["Net", "Linear", "", "ReLU"]},
    "peak": )" +
         state + R"(, "step_peaks": [)" + state + R"(], "step_ends": [], "steps_left_out": 1, "points_left_out": 0,
    "largest": {"gradient": {"step": 3, "micro_batch": null, "event": "step", "bytes": 8, "tree": [[2, 8, 8]]}},
    "points": [{"time_s": 0.5, "unix_ns": 78, "step": 3, "micro_batch": null, "event": "step", "total_bytes": 30,
      "bytes": {"parameter": 20, "optimizer_state": 10}}])" +
         more + "}";
}

MemoryState state_of(const std::string& text) {
  const TempFile file(text, "memory_state.json");
  auto state = read_memory_state(file.path());
  REQUIRE_MESSAGE(state, (state ? "" : to_text(state.error())));
  return *std::move(state);
}

std::string issues_of(const MemoryState& state) {
  std::string all;
  for (const Issue& issue : state.issues) all += issue.code + " " + std::to_string(issue.count) + "\n";
  return all;
}

const MemoryTree& tree_of(const MemoryState& state, MemoryCategory category) {
  REQUIRE(state.peak);
  const MemoryTree* found = state.peak->tree(category);
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("a whole state of memory") {
  const MemoryState state =
      state_of(text_of(R"("activation": [[3, 7, 7], [0, 1, 8]], "parameter": [[2, 16, 16], [1, 4, 20]])"));
  CHECK(issues_of(state).empty());
  CHECK(state.rank == 2);
  CHECK(state.world_size == 4);
  CHECK(state.device == "cuda:0");
  CHECK(state.notes == std::vector<std::string>{"one thing failed"});
  CHECK_FALSE(state.complete);
  REQUIRE(state.nodes.size() == 4);
  CHECK(state.nodes[2].path == "a.weight");
  CHECK(state.nodes[2].parent == 1);
  CHECK(state.nodes[2].depth == 2);
  CHECK(state.nodes[0].class_name == "Net");
  REQUIRE(state.peak);
  CHECK(state.peak->moment.micro_batch == 1);
  CHECK(state.peak->bytes() == 28);
  CHECK(state.peak->trees.front().category == MemoryCategory::parameter);  // in the order of the categories
  const MemoryTree& parameters = tree_of(state, MemoryCategory::parameter);
  REQUIRE(parameters.rows.size() == 3);  // with the whole, which the file does not name
  CHECK(parameters.rows[0].total_bytes == 20);
  CHECK(parameters.rows[1].own_bytes == 4);
  CHECK(parameters.rows[1].total_bytes == 20);
  CHECK(parameters.rows[2].total_bytes == 16);
  CHECK(tree_of(state, MemoryCategory::activation).rows[0].own_bytes == 1);
  CHECK(state.largest.front().trees.front().category == MemoryCategory::gradient);
  REQUIRE(state.points.size() == 1);
  CHECK(total(state.points[0].bytes) == 30);
  CHECK_FALSE(state.points[0].allocator);
  CHECK(state.steps_left_out == 1);
}

TEST_CASE("sums are made of what nodes have themselves, whatever the file says") {
  const MemoryState state = state_of(text_of(R"("parameter": [[0, 0, 5], [2, 16, 1]])"));
  CHECK(tree_of(state, MemoryCategory::parameter).rows[0].total_bytes == 16);
  CHECK(tree_of(state, MemoryCategory::parameter).rows[1].total_bytes == 16);
}

TEST_CASE("what does not fit is left out and counted") {
  const MemoryState state = state_of(
      text_of(R"("parameter": [[2, 16, 16], [9, 1, 1], [-1, 1, 1], [1, -5, 0], ["x", 1], 7, [1, 9223372036854775807]],
                 "novel": [[1, 3, 3]])"));
  CHECK(tree_of(state, MemoryCategory::parameter).bytes() == 16);
  CHECK(tree_of(state, MemoryCategory::unknown).bytes() == 3);
  CHECK(issues_of(state) == "memory_categories_unknown 2\nmemory_state_damaged 12\n");  // the state stands there twice
}

TEST_CASE("nodes that hold themselves, or are deeper than any model") {
  std::string paths = R"("")", parents = "-1";
  for (int i = 1; i < 500; i++) {
    paths += ", \"" + std::to_string(i) + "\"";
    parents += ", " + std::to_string(i % 100 == 0 ? i : i - 1);
  }
  const MemoryState state = state_of(R"({"kind": "memory_state", "nodes": {"path": [)" + paths + R"(], "parent": [)" +
                                     parents + R"(]}, "peak": null, "largest": {}, "step_peaks": [], "step_ends": [],
                                     "points": []})");
  for (std::size_t i = 1; i < state.nodes.size(); i++) {
    CHECK(state.nodes[i].parent < i);
    CHECK(state.nodes[i].depth <= 200);
  }
  CHECK(issues_of(state) == "memory_state_damaged 4\n");
}

TEST_CASE("figures of the allocator, each unknown by itself") {
  const MemoryState state = state_of(R"({"kind": "memory_state", "nodes": {"path": [""], "parent": [-1]},
    "largest": {}, "step_peaks": [], "step_ends": [], "points": [{"bytes": {}, "devices": {"cpu": {"parameter": 4}},
    "allocator": {"allocated_bytes": 700, "requested_bytes": null, "reserved_bytes": -1, "non_torch_bytes": 5}}]})");
  REQUIRE(state.points.size() == 1);
  REQUIRE(state.points[0].allocator);
  CHECK(state.points[0].allocator->allocated_bytes == 700);
  CHECK_FALSE(state.points[0].allocator->requested_bytes);
  CHECK_FALSE(state.points[0].allocator->reserved_bytes);
  CHECK(state.points[0].devices.front().first == "cpu");
  CHECK(issues_of(state) == "memory_state_damaged 1\n");
}

TEST_CASE("a newer one is read as far as it is known; hostile texts are made visible") {
  const MemoryState state = state_of(R"({"schema_version": 9, "kind": "memory_state", "host": "a\u0001b",
    "nodes": {"path": ["", "</script>\u0000"], "parent": [-1, 0]}, "largest": {}, "step_peaks": [], "step_ends": [],
    "points": []})");
  CHECK(state.issues.front().code == "newer_memory_state");
  CHECK(state.host == "a\\x01b");
  CHECK(state.nodes[1].path == "</script>\\x00");
}

TEST_CASE("what is none is refused with the next step") {
  for (const std::string& text :
       {std::string(R"({"kind": "memory_state", "nodes)"), std::string(R"({"kind": "memory_state", "nodes")"),
        std::string("[]"), std::string("{}"), std::string(), std::string(R"({"kind": 7})")}) {
    const TempFile file(text, "memory_state.json");
    const auto state = read_memory_state(file.path());
    REQUIRE_FALSE(state);
    CHECK(state.error().kind == ErrorKind::malformed);
    CHECK(state.error().hint.find("measure again") != std::string::npos);
    CHECK_FALSE(state.error().message.ends_with('.'));  // the hint is a sentence behind it
  }
  CHECK_FALSE(read_memory_state("/no/such/file"));
}

TEST_CASE("its reader knows it by its content, and gives a trace of its rank") {
  const Reader* reader = reader_named("memory_state");
  REQUIRE(reader != nullptr);
  const std::string text = text_of("");
  CHECK(reader->recognizes(text));
  CHECK_FALSE(reader->recognizes(R"({"schema_version": 1, "traceEvents": []})"));
  for (const Reader& other : readers()) {
    if (other.name != "memory_state") CHECK_FALSE(other.recognizes(text));
  }
  const TempFile file(text, "memory_state.json");
  const auto traces = reader->read(file.path(), {});
  REQUIRE(traces);
  CHECK(traces->front().rank.rank == 2);
  CHECK(traces->front().source.format == kMemoryStateFiles);
}

}  // namespace stepscope::read
