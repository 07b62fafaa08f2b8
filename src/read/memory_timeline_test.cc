// Memory timelines of torch's profiler: both forms, and what is wrong in them.
#include <doctest/doctest.h>

#include "base/corpus_fixture.h"
#include "base/temp_fixture.h"
#include "formats/gzip_text.h"
#include "read/reader.h"

namespace stepscope::read {
namespace {

const Reader& reader() { return *reader_named("memory_timeline"); }

Trace timeline_of(std::string_view text, std::size_t window = 0) {
  const TempFile file(text, "timeline.json");
  auto traces = reader().read(file.path(), {.chunk_bytes = window});
  REQUIRE_MESSAGE(traces, (traces ? "" : to_text(traces.error())));
  return std::move(traces->front());
}

std::string rows_of(const Trace& trace) {
  std::string all;
  const MemoryTimeline& rows = trace.memory_timeline;
  for (std::size_t i = 0; i < rows.size(); i++) {
    all += (rows.time_ns[i] == kAbsent ? "-" : std::to_string(rows.time_ns[i])) + " " +
           std::string(to_string(rows.action[i])) + " " + std::to_string(rows.bytes[i]) + " " +
           std::string(timeline_category_name(rows.category[i])) + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("memory timeline: rows of actions") {
  for (const std::size_t window : {std::size_t{0}, std::size_t{8}}) {
    const Trace trace =
        timeline_of("[[-1, 1, 512, 0], [1000, 2, 64, 4],\n [1001,3,-64,4],[1001,3,64,5], [1002, 4, -64, 5]]", window);
    CHECK(rows_of(trace) ==
          "- preexisting 512 PARAMETER\n1000 create 64 ACTIVATION\n1001 increment_version -64 ACTIVATION\n"
          "1001 increment_version 64 GRADIENT\n1002 destroy -64 GRADIENT\n");
    CHECK(trace.issues.empty());
    CHECK(trace.source.events == 5);
  }
}

TEST_CASE("memory timeline: levels become changes") {
  const Trace trace = timeline_of(
      "[[10, 10, 20, 30], [[0,5,0,0,0,0,0,0,0], [0,5,0,0,0,0,0,0,0], [0,5,0,0,0,7,0,0,0], [0,5,0,0,0,0,0,0,1]]]");
  CHECK(rows_of(trace) ==
        "10000 level 5 PARAMETER\n20000 level 7 ACTIVATION\n30000 level -7 ACTIVATION\n"
        "30000 level 1 none\n");
  CHECK(trace.issues.empty());
}

TEST_CASE("memory timeline: bad rows are counted with their place, and the rest is read") {
  const Trace trace = timeline_of("[[1,2,3,4],[1,2,3],\"x\",[1,9,3,4],[1,2,3,8],[1,2,null,4],{},[2,4,-3,4]]");
  CHECK(trace.memory_timeline.size() == 2);
  REQUIRE(trace.issues.size() == 1);
  CHECK(trace.issues[0].code == "timeline_bad_rows");
  CHECK(trace.issues[0].count == 6);
  CHECK(trace.issues[0].offset == 11);
  const Trace levels = timeline_of("[[1,2,3],[[0,1,0,0,0,0,0,0,0],[0,1],[0,9,0,0,0,0,0,0,0],[0,0,0,0,0,0,0,0,0]]]");
  CHECK(rows_of(levels) == "1000 level 1 PARAMETER\n3000 level 8 PARAMETER\n");
  CHECK(levels.issues[0].count == 2);
}

TEST_CASE("memory timeline: a cut file gives all rows before the cut") {
  const Trace trace = timeline_of("[[1,2,3,4],[2,2,3,4],[3,2,");
  CHECK(trace.memory_timeline.size() == 2);
  REQUIRE(trace.issues.size() == 1);
  CHECK(trace.issues[0].code == "timeline_cut");
  CHECK(trace.issues[0].severity == Severity::lost);
  const TempFile nothing("[[1,2,3,4", "timeline.json");
  CHECK_FALSE(reader().read(nothing.path(), {}));
}

TEST_CASE("memory timeline: recognized by content") {
  CHECK(reader().recognizes("[[-1, 1, 512, 7], [-1, 1"));
  CHECK(reader().recognizes(" [ [1696966048083, 2, 512, 0]]"));
  CHECK(reader().recognizes("[[1,2,3], [[0, 1"));
  std::string long_list = "[[1";
  for (int i = 2; i < 100; i++) long_list += "," + std::to_string(i);
  CHECK(reader().recognizes(long_list));
  for (const char* other : {"[[1, 2], [3]]", "[[1,2,3,9]]", "[{\"ph\":\"X\"}]", "[[\"a\"]]", "[]", "[[]]", "",
                            "[[1.5,2,3,4]]", "[[1, 7, 512, 0]]"}) {
    CAPTURE(other);
    CHECK_FALSE(reader().recognizes(other));
  }
}

TEST_CASE("memory timeline: a real file, as Python adds it up") {
  if (!corpus_fixture::has_corpus()) return;
  const auto traces = reader().read(corpus_fixture::corpus() / "hta/memory_analysis/memory_timeline.raw.gz", {});
  REQUIRE(traces);
  const MemoryTimeline& rows = traces->front().memory_timeline;
  CHECK(rows.size() == 16'845);
  CHECK(traces->front().source.compressed);
  CHECK(traces->front().issues.empty());
  std::int64_t sum = 0;
  for (const std::int64_t bytes : rows.bytes.span()) sum += bytes;
  CHECK(sum == 332'060'904);
}

}  // namespace stepscope::read
