// The reader of rocprofv3's JSON on cut, broken and hostile files: what stands before is read, what was lost is said.
#include <doctest/doctest.h>

#include "formats/gzip_text.h"
#include "read/rocprof_json/recording_fixture.h"

using namespace stepscope;
using formats::gzip;
using read::RecordingFile;
using read::RecordingFixture;

namespace {

const Issue* issue_of(const Trace& trace, std::string_view code) {
  for (const Issue& issue : trace.issues) {
    if (issue.code == code) return &issue;
  }
  return nullptr;
}

RecordingFixture some_of_all() {
  RecordingFixture f;
  f.hip("hipLaunchKernel", 10, 20, 5);
  f.hip("hipLaunchKernel", 30, 40, 6);
  f.counters(40, 50, 4, 9, R"({"counter_id": {"handle": 55}, "value": 2})");
  f.kernel(100, 200, 5);
  f.kernel(200, 300, 6, 2);
  f.marker("roctxThreadRangeA", "a \\u00e9 \\\" [{", 1, 50, 7);
  f.memory("ALLOCATE", 10, RecordingFixture::kGpu1, "0x1000", 512);
  return f;
}

// All that a trace holds, to compare by.
std::string rows_of(const Trace& trace) {
  std::string out;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto id = static_cast<SliceId>(row);
    out += std::string(trace.name(id)) + " " + std::to_string(trace.slices.start_ns[id]) + " " +
           std::to_string(trace.slices.dur_ns[id]) + "\n";
  }
  for (std::size_t row = 0; row < trace.counters.size(); row++) out += std::to_string(trace.counters.value[row]) + "\n";
  for (std::size_t row = 0; row < trace.memory.size(); row++) out += std::to_string(trace.memory.bytes[row]) + "\n";
  return out;
}

}  // namespace

TEST_CASE("rocprof: the same rows whatever the window, plain and gzip") {
  const std::string text = some_of_all().text();
  const auto whole = RecordingFile(text).read();
  REQUIRE(whole);
  CHECK(whole->front().issues.empty());
  const std::string rows = rows_of(whole->front());
  CHECK(whole->front().slices.size() == 7);
  CHECK(rows.find("a \xc3\xa9 \" [{ 1 49") != std::string::npos);
  for (const std::size_t window : {1, 2, 3, 7, 64, 1000}) {
    CAPTURE(window);
    const auto again = RecordingFile(text).read({.chunk_bytes = window});
    REQUIRE(again);
    CHECK(rows_of(again->front()) == rows);
    CHECK(again->front().issues.empty());
  }
  const std::string packed = gzip(text);
  const auto unpacked = RecordingFile(packed).read();
  REQUIRE(unpacked);
  CHECK(rows_of(unpacked->front()) == rows);
  CHECK(unpacked->front().source.compressed);
  CHECK(unpacked->front().source.file_bytes == packed.size());
  CHECK(unpacked->front().source.text_bytes == text.size());
  CHECK_FALSE(RecordingFile(packed).read({.max_text_bytes = text.size() - 1}));

  const auto cut = RecordingFile(packed.substr(0, packed.size() / 2)).read();
  REQUIRE(cut);
  CHECK(issue_of(cut->front(), "gzip_cut") != nullptr);
  CHECK(issue_of(cut->front(), "cut_inside_record") != nullptr);
}

TEST_CASE("rocprof: cut anywhere, what stands before is read and the place is said") {
  const std::string text = some_of_all().text();
  const auto last = text.find_last_not_of("}] \n");
  const std::size_t all = RecordingFile(text).read()->front().slices.size();
  std::size_t rows = 0;
  for (std::size_t size = 0; size < text.size(); size++) {
    CAPTURE(size);
    const auto traces = RecordingFile(text.substr(0, size)).read();
    if (!traces) {
      CHECK(traces.error().kind == ErrorKind::malformed);
      CHECK(size < std::string_view("{\"rocprofiler-sdk-tool\": [").size());
      continue;
    }
    const Trace& trace = traces->front();
    CHECK(trace.slices.size() >= rows);  // never fewer than of a shorter piece
    rows = trace.slices.size();
    const Issue* cut = issue_of(trace, "cut_inside_record");
    REQUIRE(cut != nullptr);
    CHECK(cut->severity == Severity::lost);
    CHECK(cut->offset.value_or(0) == size);
  }
  CHECK(rows == all);  // nothing but brackets was missing
  CHECK(last < text.size());
}

TEST_CASE("rocprof: a broken record costs itself alone") {
  RecordingFixture f = some_of_all();
  f.record("kernel_dispatch", R"("start_timestamp": 12..5, "end_timestamp": 13)");
  f.kernel(400, 500, 7);
  const std::string text = f.text();
  const auto traces = RecordingFile(text).read();
  REQUIRE(traces);
  const Trace& trace = traces->front();
  CHECK(trace.device.size() == 4);
  REQUIRE(issue_of(trace, "broken_record") != nullptr);
  CHECK(issue_of(trace, "broken_record")->count == 1);
  CHECK(text.substr(issue_of(trace, "broken_record")->offset.value_or(0)).starts_with(R"({"start_timestamp": 12..5)"));
}

TEST_CASE("rocprof: times that cannot be are counted, never guessed") {
  RecordingFixture f;
  f.kernel(500, 400, 1);
  f.kernel(0, 0, 2);  // the tool never heard of its end
  f.record("kernel_dispatch", R"("start_timestamp": "soon", "end_timestamp": null, "dispatch_info": 5)");
  f.record("hip_api", R"("start_timestamp": 18446744073709551615, "end_timestamp": 5)");
  f.record("hip_api", R"("kind": 99, "operation": -5, "start_timestamp": 5, "end_timestamp": 7)");
  const auto traces = RecordingFile(f.text()).read();
  REQUIRE(traces);
  const Trace& trace = traces->front();
  REQUIRE(issue_of(trace, "negative_duration") != nullptr);
  CHECK(issue_of(trace, "negative_duration")->count == 1);
  REQUIRE(issue_of(trace, "missing_time") != nullptr);
  CHECK(issue_of(trace, "missing_time")->count == 3);
  REQUIRE(issue_of(trace, "unknown_operation") != nullptr);
  CHECK(trace.device.size() == 1);
  CHECK(trace.source.events == 5);
}

TEST_CASE("rocprof: tables of another type are said, and the rest is read") {
  const RecordingFixture f = some_of_all();
  for (const std::string& wrong : {"7", "\"text\"", "null", "{\"a\": [1, 2]}", "[1, \"a\", null, [], {}]"}) {
    CAPTURE(wrong);
    const std::string process = "{\"metadata\": " + wrong + ", \"agents\": " + wrong + ", \"strings\": " + wrong +
                                ", \"kernel_symbols\": " + wrong + ", \"callback_records\": " + wrong +
                                ", \"of_a_release_to_come\": " + wrong + ", " + f.head() + ", " + f.names() + ", " +
                                f.records() + "}";
    const auto traces = RecordingFile(RecordingFixture::file({process})).read();
    REQUIRE(traces);
    CHECK(traces->front().slices.size() == 7);
    CHECK_FALSE(traces->front().issues.empty());
  }
  for (const std::string& wrong : {"7", "null", "[]", "{}", "[[]]", "[7]", "[null, {}]", "{\"buffer_records\": []}"}) {
    CAPTURE(wrong);
    const auto traces = RecordingFile("{\"rocprofiler-sdk-tool\": " + wrong + "}").read();
    REQUIRE(traces);
    REQUIRE_FALSE(traces->empty());
    CHECK(issue_of(traces->front(), "no_events") != nullptr);
  }
}

TEST_CASE("rocprof: a text that is no JSON any more ends the reading where it breaks") {
  const std::string text = some_of_all().text();
  const std::size_t at = text.find("\"marker_api\": [{");  // behind all tables but this one
  REQUIRE(at != std::string::npos);
  for (const std::string& wrong : {"oops: ", "}", ":", "\"a\" \"b\""}) {
    CAPTURE(wrong);
    const auto traces = RecordingFile(text.substr(0, at) + wrong + text.substr(at)).read();
    REQUIRE(traces);
    CHECK_FALSE(traces->front().issues.empty());
  }
  const auto traces = RecordingFile(text.substr(0, text.rfind("\"marker_api\": [{")) + "oops").read();
  REQUIRE(traces);
  REQUIRE(issue_of(traces->front(), "broken_text") != nullptr);
  CHECK(issue_of(traces->front(), "broken_text")->offset == text.rfind("\"marker_api\": [{"));
}

TEST_CASE("rocprof: no nesting and no size of one value exhausts anything") {
  const std::string open(200'000, '['), close(200'000, ']');
  RecordingFixture f = some_of_all();
  f.record("kernel_dispatch", "\"deep\": " + open + close);
  f.record("of_a_release_to_come", "\"deep\": " + open + close);
  const auto traces = RecordingFile(f.text()).read();
  REQUIRE(traces);
  CHECK(traces->front().slices.size() == 7);
  CHECK(issue_of(traces->front(), "broken_record") != nullptr);
  CHECK(RecordingFile("{\"rocprofiler-sdk-tool\": " + open).read());

  std::string many = "{}";
  for (int i = 0; i < 1'500; i++) many += ",{}";
  const auto processes = RecordingFile("{\"rocprofiler-sdk-tool\": [" + many + "]}").read();
  REQUIRE(processes);
  CHECK(processes->size() == 1'024);
  REQUIRE(issue_of(processes->back(), "too_many_processes") != nullptr);
  CHECK(issue_of(processes->back(), "too_many_processes")->count == 1'501 - 1'024);

  const std::string large = "{\"note\": \"" + std::string(std::size_t{65} << 20, 'a') + "\"}";
  const auto with_large = RecordingFile("{\"rocprofiler-sdk-tool\": {\"buffer_records\": {\"hip_api\": [" + large +
                                        R"(, {"start_timestamp": 5, "end_timestamp": 6}]}}})")
                              .read();
  REQUIRE(with_large);
  CHECK(with_large->front().slices.size() == 1);
  CHECK(issue_of(with_large->front(), "record_too_large") != nullptr);
}
