// CUDA memory snapshots: all that torch writes in its versions, what is odd told and never guessed, and a real file.
#include "read/cuda_snapshot.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/corpus_fixture.h"
#include "base/temp_fixture.h"
#include "formats/pickle_fixture.h"

namespace stepscope::read {
namespace {

using namespace pickle_fixture;

CudaSnapshot snapshot_of(const std::string& value) {
  const TempFile file(pickle(value), "snapshot.pickle");
  auto snapshot = read_cuda_snapshot(file.path());
  REQUIRE_MESSAGE(snapshot, (snapshot ? "" : to_text(snapshot.error())));
  return std::move(*snapshot);
}

std::string frame(std::string_view function, std::uint64_t line) {
  return dict({{"filename", text("train.py")}, {"name", text(function)}, {"line", integer(line)}});
}
std::string event(std::string_view action, std::uint64_t address, std::uint64_t size) {
  return dict({{"action", text(action)},
               {"addr", integer(address)},
               {"size", integer(size)},
               {"stream", integer(0)},
               {"time_us", integer(1'700'000'000'000'000)},
               {"frames", list({})}});
}
std::string traces(std::initializer_list<std::string> devices) { return dict({{"device_traces", list(devices)}}); }

std::string issues_of(const CudaSnapshot& snapshot) {
  std::string all;
  for (const Issue& issue : snapshot.issues) {
    all += issue.code + " (" + std::to_string(issue.count) + ") " + issue.sentence + "\n";
  }
  return all;
}

std::vector<std::string> functions(const CudaSnapshot& snapshot, StackId stack) {
  std::vector<std::string> names;
  for (const FrameId id : snapshot.frames_of(stack)) names.emplace_back(snapshot.strings[snapshot.frames[id].function]);
  return names;
}

}  // namespace

TEST_CASE("cuda snapshot: events with all that torch writes about them") {
  const std::string stack = list({frame("leaf", 3), frame("main", 9)});
  const CudaSnapshot s = snapshot_of(traces({list({dict({{"action", text("alloc")},
                                                         {"addr", integer(0x7f00)},
                                                         {"size", integer(512)},
                                                         {"stream", integer(0x55aa)},
                                                         {"time_us", integer(17)},
                                                         {"frames", stack},
                                                         {"compile_context", text("N/A")},
                                                         {"user_metadata", text("batch 3")},
                                                         {"pool_id", tuple(integer(0), integer(4))},
                                                         {"category", text("GRADIENT")},
                                                         {"forward_frames", list({frame("forward", 1)})}}),
                                                   dict({{"action", text("free_completed")},
                                                         {"addr", integer(0x7f00)},
                                                         {"size", integer(512)},
                                                         {"stream", integer(0x55aa)},
                                                         {"time_us", integer(18)},
                                                         {"frames", stack}}),
                                                   dict({{"action", text("oom")},
                                                         {"device_free", integer(99)},
                                                         {"size", integer(1 << 30)},
                                                         {"stream", integer(0)},
                                                         {"time_us", integer(19)},
                                                         {"frames", list({})}})})}));
  CHECK(issues_of(s) == "");
  REQUIRE(s.devices.size() == 1);
  CHECK(s.has_traces);
  CHECK(s.devices[0].count == 3);
  const AllocatorEvents& e = s.events;
  CHECK(e.action[0] == AllocatorAction::alloc);
  CHECK(e.action[1] == AllocatorAction::free_completed);
  CHECK(e.action[2] == AllocatorAction::oom);
  CHECK(e.address[0] == 0x7f00);
  CHECK(e.address[2] == 99);
  CHECK(e.size_bytes[2] == 1 << 30);
  CHECK(e.time_us[1] == 18);
  CHECK(s.streams == std::vector<std::uint64_t>{0x55aa, 0});
  CHECK(e.stream[1] == 0);
  CHECK(e.stack[0] == e.stack[1]);  // two lists, one stack
  CHECK(functions(s, e.stack[0]) == std::vector<std::string>{"leaf", "main"});
  CHECK(e.stack[2] != StackId::none);
  CHECK(s.frames_of(e.stack[2]).empty());
  CHECK(s.frames.size() == 3);
  const EventContext& context = s.contexts[e.context[0]];
  CHECK(s.strings[context.compile_context] == "N/A");
  CHECK(s.strings[context.user_metadata] == "batch 3");
  CHECK(s.strings[context.category] == "GRADIENT");
  CHECK(s.pools[context.pool] == MemoryPool{0, 4});
  CHECK(functions(s, context.forward_stack) == std::vector<std::string>{"forward"});
  CHECK(e.context[1] == kNoEntry);
  CHECK(e.bytes() / e.size() <= 40);
}

TEST_CASE("cuda snapshot: every action") {
  const CudaSnapshot s = snapshot_of(traces(
      {list({event("alloc", 1, 1), event("free_requested", 1, 1), event("free_completed", 1, 1),
             event("segment_alloc", 1, 1), event("segment_free", 1, 1), event("segment_map", 1, 1),
             event("segment_unmap", 1, 1), event("oom", 1, 1), event("snapshot", 0, 0), event("dance", 1, 1)})}));
  for (int i = 0; i < 10; i++) CHECK(static_cast<int>(s.events.action[i]) == i);
  CHECK(s.events.action[9] == AllocatorAction::other);
  CHECK(issues_of(s) ==
        "snapshot_unknown_words (1) words that are not known stand for an action or state: event dance (1)\n");
}

TEST_CASE("cuda snapshot: segments, blocks, annotations and settings") {
  const auto block = [](std::uint64_t address, std::string_view state) {
    return dict({{"address", integer(address)},
                 {"size", integer(512)},
                 {"requested_size", integer(500)},
                 {"state", text(state)},
                 {"frames", list({frame("make", 1)})}});
  };
  const CudaSnapshot s = snapshot_of(dict(
      {{"segments", list({dict({{"device", integer(1)},
                                {"address", integer(4096)},
                                {"total_size", integer(2048)},
                                {"allocated_size", integer(512)},
                                {"active_size", integer(1536)},
                                {"requested_size", integer(500)},
                                {"stream", integer(7)},
                                {"segment_type", text("small")},
                                {"segment_pool_id", tuple(integer(0), integer(1))},
                                {"is_expandable", kTrue},
                                {"registration_counter", integer(2)},
                                {"frames", list({})},
                                {"blocks", list({block(4096, "active_allocated"), block(4608, "active_pending_free"),
                                                 block(5120, "active_awaiting_free"), block(5632, "inactive")})}})})},
       {"device_traces", list({list({}), list({})})},
       {"allocator_settings", dict({{"PYTORCH_CUDA_ALLOC_CONF", text("a:b")},
                                    {"max_split_size", integer(-1)},
                                    {"garbage_collection_threshold", "G" + std::string(8, '\0')},
                                    {"expandable_segments", kFalse},
                                    {"roundup_power2_divisions", dict({{"1", integer(0)}, {"64", integer(8)}})}})},
       {"external_annotations", list({dict({{"stage", text("START")},
                                            {"name", text("Optimizer.step#AdamW.step")},
                                            {"device", integer(1)},
                                            {"time_us", integer(33)}})})}}));
  CHECK(issues_of(s) == "");
  CHECK(s.devices.size() == 2);
  REQUIRE(s.segments.size() == 1);
  const SnapshotSegment& segment = s.segments[0];
  CHECK(segment.device == 1);
  CHECK(segment.address == 4096);
  CHECK(segment.total_bytes == 2048);
  CHECK(segment.allocated_bytes == 512);
  CHECK(segment.active_bytes == 1536);
  CHECK(segment.requested_bytes == 500);
  CHECK(s.streams[segment.stream] == 7);
  CHECK(s.strings[segment.type] == "small");
  CHECK(s.pools[segment.pool] == MemoryPool{0, 1});
  CHECK(segment.expandable == 1);
  CHECK(segment.registration_counter == 2);
  REQUIRE(segment.blocks.count == 4);
  CHECK(s.blocks[0].state == BlockState::active);
  CHECK(s.blocks[1].state == BlockState::pending_free);
  CHECK(s.blocks[2].state == BlockState::pending_free);
  CHECK(s.blocks[3].state == BlockState::inactive);
  CHECK(s.blocks[3].address == 5632);
  CHECK(s.blocks[3].requested_bytes == 500);
  CHECK(functions(s, s.blocks[0].stack) == std::vector<std::string>{"make"});
  REQUIRE(s.annotations.size() == 1);
  CHECK(s.strings[s.annotations[0].name] == "Optimizer.step#AdamW.step");
  CHECK(s.strings[s.annotations[0].stage] == "START");
  CHECK(s.annotations[0].time_us == 33);
  REQUIRE(s.settings.size() == 6);
  CHECK(std::get<std::string>(s.settings[0].value) == "a:b");
  CHECK(std::get<std::int64_t>(s.settings[1].value) == -1);
  CHECK(std::get<double>(s.settings[2].value) == 0);
  CHECK(std::get<bool>(s.settings[3].value) == false);
  CHECK(s.settings[5].name == "roundup_power2_divisions.64");
  CHECK(std::get<std::int64_t>(s.settings[5].value) == 8);
}

TEST_CASE("cuda snapshot: the oldest files are a list of segments whose blocks have a history and no address") {
  const std::string past =
      dict({{"addr", integer(4096)}, {"real_size", integer(300)}, {"frames", list({frame("old", 1)})}});
  const CudaSnapshot s = snapshot_of(list({dict(
      {{"device", integer(0)},
       {"address", integer(4096)},
       {"total_size", integer(2048)},
       {"segment_type", text("small")},
       {"blocks",
        list({dict({{"size", integer(512)}, {"state", text("active_allocated")}, {"history", list({past, past})}}),
              dict({{"size", integer(1536)}, {"state", text("inactive")}})})}})}));
  CHECK(issues_of(s) == "");
  CHECK_FALSE(s.has_traces);
  REQUIRE(s.blocks.size() == 2);
  CHECK(s.blocks[0].address == 4096);
  CHECK(s.blocks[1].address == 4608);
  CHECK(s.blocks[0].history.count == 2);
  CHECK(s.history[0].address == 4096);
  CHECK(s.blocks[0].requested_bytes == 300);
  CHECK(functions(s, s.blocks[0].stack) == std::vector<std::string>{"old"});
  CHECK(s.segments[0].expandable == -1);
  CHECK(s.segments[0].stream == kNoEntry);
}

TEST_CASE("cuda snapshot: frames of torch.fx") {
  const CudaSnapshot s =
      snapshot_of(traces({list({dict({{"action", text("alloc")},
                                      {"addr", integer(1)},
                                      {"size", integer(1)},
                                      {"stream", integer(0)},
                                      {"time_us", integer(1)},
                                      {"frames", list({dict({{"filename", text("<eval_with_key>")},
                                                             {"name", text("forward")},
                                                             {"line", integer(5)},
                                                             {"fx_node_op", text("call_function")},
                                                             {"fx_node_name", text("mm")},
                                                             {"fx_node_target", text("aten.mm")},
                                                             {"fx_original_trace", text("model.py:3")},
                                                             {"fx_node_info", text("info")}})})}})})}));
  CHECK(issues_of(s) == "");
  const SnapshotFrame& frame = s.frames[0];
  CHECK(s.strings[frame.fx_op] == "call_function");
  CHECK(s.strings[frame.fx_node] == "mm");
  CHECK(s.strings[frame.fx_target] == "aten.mm");
  CHECK(s.strings[frame.fx_trace] == "model.py:3");
  CHECK(s.strings[frame.fx_info] == "info");
}

TEST_CASE("cuda snapshot: what is odd is left empty, counted and named") {
  const CudaSnapshot s = snapshot_of(
      dict({{"version", integer(9)},
            {"allocator_settings", dict({{"odd", list({})}})},
            {"device_traces", list({list({dict({{"action", kNone},
                                                {"addr", text("here")},
                                                {"size", integer(-5)},
                                                {"stream", integer(-1)},
                                                {"color", text("red")},
                                                {"frames", integer(1)},
                                                {"pool_id", text("x")}}),
                                          dict({{"action", text("alloc")}, {"color", text("red")}}), integer(3)})})}}));
  CHECK(s.devices[0].count == 2);
  CHECK(s.events.address[0] == kNoAddress);
  CHECK(s.events.size_bytes[0] == kNotRecorded);
  CHECK(s.events.time_us[0] == kNotRecorded);
  CHECK(s.events.stream[0] == kNoEntry);
  CHECK(s.events.stack[0] == StackId::none);
  CHECK(s.events.action[0] == AllocatorAction::other);
  CHECK(issues_of(s) ==
        "snapshot_unknown_keys (3) keys that are not known were left out: event color (2), snapshot version (1)\n"
        "snapshot_not_recorded (2) values are missing that the version of torch did not write: event time_us (2)\n"
        "snapshot_missing_keys (3) values are missing that every version of torch writes: event addr (1), event size "
        "(1), event stream (1)\n"
        "snapshot_wrong_types (7) values are not of the type that their key has, and were left empty: event addr (1), "
        "event size (1), event stream (1), event frames (1), event pool_id (1), setting odd (1), list (1)\n");
  for (const Issue& issue : s.issues) CHECK(issue.offset.has_value());
}

TEST_CASE("cuda snapshot: one dict or list in several places") {
  const std::string first = event("alloc", 1, 8) + "\x94", second = event("alloc", 2, 8) + "\x94";
  // Memo 0 and 1: two events; 2: the first device's list, which the second device has too; a third has one event twice.
  const CudaSnapshot s = snapshot_of(
      dict({{"device_traces", "](](" + first + second + "e\x94" + get(2) + "](" + get(1) + get(0) + get(1) + "ee"},
            {"elsewhere", event("alloc", 3, 8)}}));
  REQUIRE(s.devices.size() == 3);
  CHECK(s.devices[0].first == s.devices[1].first);
  CHECK(s.devices[1].count == 2);
  REQUIRE(s.devices[2].count == 3);
  const auto at = [&](std::uint32_t i) { return s.events.address[s.devices[2].first + i]; };
  CHECK((at(0) == 2 && at(1) == 1 && at(2) == 2));
  CHECK(issues_of(s) ==
        "snapshot_unknown_keys (1) keys that are not known were left out: snapshot elsewhere (1)\n"
        "snapshot_rows_outside (1) rows stand in no list of the snapshot and were left out: event (1)\n");
}

TEST_CASE("cuda snapshot: other files are refused") {
  const auto error_of = [](const std::string& bytes) {
    const TempFile file(bytes);
    const auto snapshot = read_cuda_snapshot(file.path());
    REQUIRE_FALSE(snapshot);
    return snapshot.error();
  };
  CHECK(error_of(pickle(kNone)).kind == ErrorKind::unrecognized);
  CHECK(error_of(pickle(dict({{"a", integer(1)}}))).kind == ErrorKind::unrecognized);
  CHECK(error_of(pickle(event("alloc", 1, 1))).kind == ErrorKind::unrecognized);
  CHECK(error_of("{\"traceEvents\": []}").kind == ErrorKind::unsupported);
  const Error program = error_of("\x80\x04" + text("segments") + "\x8c\x02os\x8c\x06system\x93)R.");
  CHECK(program.kind == ErrorKind::unsupported);
  CHECK(program.offset == 27);
  CHECK(read_cuda_snapshot("/no/such/file").error().kind == ErrorKind::unreadable);
  CHECK(looks_like_cuda_snapshot(pickle(traces({}))));
  CHECK_FALSE(looks_like_cuda_snapshot(pickle(kNone)));
  CHECK_FALSE(looks_like_cuda_snapshot("segments"));
}

TEST_CASE("cuda snapshot: a real one, to the byte") {
  using namespace corpus_fixture;
  if (!has_corpus()) return;
  const auto snapshot = read_cuda_snapshot((corpus() / "mosaic" / "output.pickle").string());
  REQUIRE(snapshot);
  const CudaSnapshot& s = *snapshot;
  CHECK(issues_of(s) == "");
  REQUIRE(s.devices.size() == 1);
  CHECK(s.devices[0].count == 1040);
  CHECK(s.segments.size() == 5);
  CHECK(s.blocks.size() == 17);
  CHECK(s.annotations.size() == 6);
  std::int64_t reserved = 0;
  for (const SnapshotSegment& segment : s.segments.span()) reserved += segment.total_bytes;
  CHECK(reserved == 262'144'000);
  // Active memory by its events: from alloc to free_completed, beginning with what they free and never allocated (here
  // nothing). Mosaic says the same of this file; the 17 blocks of its segments, of which no event tells, are not in it.
  std::int64_t active = 0, lowest = 0, highest = 0;
  for (std::uint32_t row = 0; row < 1040; row++) {
    const bool alloc = s.events.action[row] == AllocatorAction::alloc;
    REQUIRE((alloc || s.events.action[row] == AllocatorAction::free_completed));
    active += alloc ? s.events.size_bytes[row] : -s.events.size_bytes[row];
    lowest = std::min(lowest, active);
    highest = std::max(highest, active);
  }
  CHECK(highest - lowest == 2'255'398'132);
  CHECK(lowest == 0);
  CHECK(s.strings[s.frames[s.frames_of(s.events.stack[0])[0]].file] == "/path/to/baz.py");
  CHECK(s.events.time_us[0] == 1'759'252'584'204'770);
}

TEST_CASE("cuda snapshot: a page of torch's viewer") {
  // pickle.dumps({"device_traces": [[{"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "time_us": 7}]]}) and
  // the zeros behind it.
  const std::string before =
      "\n<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<script type=\"module\">\nimport {add_local_files} from "
      "\"https://example.org/MemoryViz.js\"\nconst local_files = [{\"name\": \"snapshot.pickle\", \"base64\": \"";
  const std::string base64 =
      "gASVWgAAAAAAAAB9lIwNZGV2aWNlX3RyYWNlc5RdlF2UfZQojAZhY3Rpb26UjAVhbGxvY5SMBGFkZHKUTQAQjARzaXpllE0A"
      "AowGc3RyZWFtlEsAjAd0aW1lX3VzlEsHdWFhcy4A";
  const std::string after = "\"}]\nadd_local_files(local_files, 'Active Memory Timeline')\n</script>\n</body>\n";
  CHECK(looks_like_cuda_snapshot(before + base64));
  CHECK(!looks_like_cuda_snapshot("<html>\"base64\": \""));
  const TempFile page(before + base64 + after, "plot.html");
  const auto snapshot = read_cuda_snapshot(page.path());
  REQUIRE_MESSAGE(snapshot, (snapshot ? "" : to_text(snapshot.error())));
  CHECK(issues_of(*snapshot) == "");
  REQUIRE(snapshot->events.size() == 1);
  CHECK(snapshot->events.address[0] == 4096);
  CHECK(snapshot->events.size_bytes[0] == 512);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, base64.size() / 2}) {
    const TempFile cut(before + base64.substr(0, size), "plot.html");
    CHECK(!read_cuda_snapshot(cut.path()));
    const TempFile ended(before + base64.substr(0, size) + after, "plot.html");
    CHECK(!read_cuda_snapshot(ended.path()));
  }
}

}  // namespace stepscope::read
