// Perfetto traces: what was written is read back as the same model, slices nest on every track, and what cannot come
// back is listed here.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/temp_fixture.h"
#include "derive/derive.h"
#include "formats/perfetto_fields.h"
#include "formats/protobuf.h"
#include "model/trace_fixture.h"
#include "write/write_fixture.h"

namespace stepscope::write {
namespace {

using namespace corpus_fixture;

namespace wire = formats::perfetto;
using formats::ProtoField;
using formats::ProtoFields;

// What check_same() leaves out: issues with their places, groups, the writer, rank and clock as they were.
void check_whole(const Run& a, const Run& b) {
  check_same(a, b);
  for (std::size_t i = 0; i < std::min(a.traces.size(), b.traces.size()); i++) {
    const Trace &x = a.traces[i], &y = b.traces[i];
    CHECK(same_track_order(x, y));
    CHECK_EQ(x.source.writer, y.source.writer);
    CHECK_EQ(x.clock_base_ns, y.clock_base_ns);
    CHECK_EQ(x.rank.backend, y.rank.backend);
    CHECK_EQ(x.steps.size(), y.steps.size());
    REQUIRE_EQ(x.groups.size(), y.groups.size());
    for (std::size_t k = 0; k < x.groups.size(); k++) {
      CHECK_EQ(x.groups[k].name, y.groups[k].name);
      CHECK_EQ(x.groups[k].ranks, y.groups[k].ranks);
    }
    REQUIRE_EQ(x.issues.size(), y.issues.size());
    for (std::size_t k = 0; k < x.issues.size(); k++) {
      CHECK_EQ(x.issues[k].code, y.issues[k].code);
      CHECK_EQ(x.issues[k].severity, y.issues[k].severity);
      CHECK_EQ(x.issues[k].count, y.issues[k].count);
      CHECK_EQ(x.issues[k].offset, y.issues[k].offset);
    }
  }
}

struct TrackEvent {
  std::int64_t time_ns = 0;
  std::uint64_t type = 0;
};

// The begins and ends of each track in the file's order.
std::map<std::uint64_t, std::vector<TrackEvent>> halves_of(const std::string& text) {
  std::map<std::uint64_t, std::vector<TrackEvent>> tracks;
  ProtoFields packets(text);
  for (ProtoField packet; packets.next(packet);) {
    TrackEvent event;
    std::uint64_t track = 0;
    ProtoFields members(packet.bytes);
    for (ProtoField member; members.next(member);) {
      if (member.number == wire::packet::timestamp) event.time_ns = member.integer();
      if (member.number != wire::packet::event) continue;
      ProtoFields parts(member.bytes);
      for (ProtoField part; parts.next(part);) {
        if (part.number == wire::event::type) event.type = part.value;
        if (part.number == wire::event::track) track = part.value;
      }
    }
    if (event.type == wire::event::slice_begin || event.type == wire::event::slice_end) tracks[track].push_back(event);
  }
  CHECK(packets.ok());
  return tracks;
}

// Each track is in the order of time and its slices nest; returns how many there are.
std::size_t check_nesting(const std::string& text) {
  std::size_t slices = 0;
  for (const auto& [track, events] : halves_of(text)) {
    int depth = 0;
    std::int64_t last = INT64_MIN;
    for (const TrackEvent& event : events) {
      REQUIRE_GE(event.time_ns, last);
      last = event.time_ns;
      depth += event.type == wire::event::slice_begin ? 1 : -1;
      slices += event.type == wire::event::slice_begin ? 1 : 0;
      REQUIRE_GE(depth, 0);
    }
    CHECK_EQ(depth, 0);
  }
  return slices;
}

Run run_of(TraceFixture&& fixture) {
  Run run;
  run.traces.push_back(std::move(fixture.trace));
  REQUIRE(derive::derive(run.traces[0], {}));
  return run;
}

std::vector<std::string> more_traces() {
  std::vector<std::string> all = traces();
  if (!has_corpus()) return all;
  for (const char* name : {"nsys/h100_2gpu_1s.sqlite", "nsys/mock.sqlite", "hta/triton_example"}) {
    all.push_back((corpus() / name).string());
  }
  return all;
}

}  // namespace

TEST_CASE("write: perfetto is read back as the same model, plain and gzip") {
  const TempFolder folder;
  for (const std::string& path : more_traces()) {
    CAPTURE(path);
    Run run = opened(path);
    run.traces.resize(1);
    run.traces[0].rank.source = RankSource::distributed_info;  // else the name of the file decides again
    REQUIRE(writer("perfetto").write(run, folder / "out.pftrace", {}));
    check_whole(run, opened(folder / "out.pftrace"));
    CHECK_EQ(check_nesting(whole_file(folder / "out.pftrace")), run.traces[0].slices.size());
  }
  const Run run = opened(trace("tiny_train.json"));
  for (const char* name : {"a.pftrace", "b.pftrace", "c.pftrace.gz"}) {
    REQUIRE(writer("perfetto").write(run, folder / name, {}));
  }
  CHECK(whole_file(folder / "a.pftrace") == whole_file(folder / "b.pftrace"));
  CHECK_LT(whole_file(folder / "c.pftrace.gz").size(), whole_file(folder / "a.pftrace").size() / 2);
  CHECK_EQ(TraceCompare(run.traces[0], opened(folder / "c.pftrace.gz").traces[0]).contents(), "");
}

TEST_CASE("write: ranks in one Perfetto file come back as they were") {
  const TempFolder folder;
  for (const std::string& path : more_traces()) {
    CAPTURE(path);
    Run run = opened(path);
    if (run.traces.size() < 2) {
      Run other = opened(path);  // the same twice, as ranks 0 and 5, on clocks that differ
      run.traces.push_back(std::move(other.traces[0]));
      run.traces[0].rank.rank = 0;
      run.traces[1].rank.rank = 5;
      run.traces[1].clock.offset_ns = -3'000'000'007;
    }
    REQUIRE(writer("perfetto").write(run, folder / "merged.pftrace", {}));
    check_whole(run, opened(folder / "merged.pftrace"));
  }
  const Run run = opened(trace("two_ranks"));
  REQUIRE(writer("perfetto").write(run, folder / "prefix.pftrace", {.lane_prefix = "r"}));
  CHECK_NE(whole_file(folder / "prefix.pftrace").find("r1_"), std::string::npos);
  REQUIRE(writer("perfetto").write(run, folder / "plain.pftrace", {}));
  CHECK_NE(whole_file(folder / "plain.pftrace").find("rank 1 / "), std::string::npos);
}

TEST_CASE("write: slices that overlap go to further tracks, times before zero come back") {
  TraceFixture f;
  const TrackId host = f.host("1"), gpu = f.stream("7");
  f.slice(host, "cpu_op", "outer", -100, 200);
  f.slice(host, "cpu_op", "overlaps", 50, 100);
  f.slice(host, "cpu_op", "inner", 60, 10);
  f.slice(host, "cpu_op", "nothing", 60, 0);
  f.slice(host, "cpu_op", "nothing", 60, 0);
  f.slice(host, "cpu_op", "third", 70, 200);
  f.slice(host, "cpu_op", "begins where one ends", 100, 5'000'000'000);
  f.kernel(gpu, "a", 10, 20, 1);
  f.kernel(gpu, "b", 15, 20, 2);
  f.flow("ac2g", 3, host, -100, gpu, 10);
  f.flow("ac2g", 4, host, 20, gpu, 5);  // nothing runs at its end
  const TempFolder folder;
  const Run run = run_of(std::move(f));
  REQUIRE(writer("perfetto").write(run, folder / "out.pftrace", {}));
  const Run back = opened(folder / "out.pftrace");
  CHECK_EQ(TraceCompare(run.traces[0], back.traces[0]).contents(), "");
  const std::string text = whole_file(folder / "out.pftrace");
  CHECK_EQ(check_nesting(text), run.traces[0].slices.size());
  CHECK_EQ(halves_of(text).size(), 5);  // three lanes of the host, two of the stream
}

TEST_CASE("write: memory, counters, texts as ids and what was lost come back in a Perfetto file") {
  const TempFolder folder;
  folder.put("in.json", R"({"baseTimeNanoseconds": 1700000000000000000, "traceName": "\u00fc", "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "op", "pid": "Spans", "tid": "lane \"1\"", "ts": 1.001, "dur": 5.5, "args": {}},
    {"ph": "X", "cat": "cpu_op", "name": "", "pid": 7, "tid": 0, "ts": 2, "dur": 9000000.001, "args": {"External id": 3}},
    {"ph": "i", "name": "[memory]", "s": "t", "pid": 7, "tid": 8, "ts": 3, "args": {"Device Type": 1, "Device Id": 0,
     "Addr": -5, "Bytes": -512, "Total Allocated": 8589934592, "Total Reserved": 0}},
    {"ph": "C", "name": "clock", "pid": 7, "tid": 8, "ts": 3.5, "args": {"MHz": 1500.25, "W": -0.1}},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": "text", "pid": 7, "tid": 8, "ts": 1},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": "text", "pid": "Spans", "tid": "lane \"1\"", "ts": 2, "bp": "e"},
    {"ph": "X", "name": "no time", "pid": 7, "tid": 8, "dur": 1},
    {"ph": "M", "name": "thread_sort_index", "pid": 7, "tid": 8, "args": {"sort_index": -3}}]})");
  const Run run = opened(folder / "in.json");
  const Trace& trace = run.traces[0];
  REQUIRE_EQ(trace.memory.size(), 1);
  REQUIRE_EQ(trace.counters.size(), 2);
  REQUIRE_EQ(trace.flows.size(), 2);
  REQUIRE_FALSE(trace.issues.empty());
  REQUIRE(writer("perfetto").write(run, folder / "out.pftrace", {}));
  check_whole(run, opened(folder / "out.pftrace"));
}

TEST_CASE("write: what a Perfetto file cannot bring back") {
  TraceFixture f;
  f.slice(f.host("1"), "cpu_op", "control \x01 byte", 0, 10);
  f.trace.nodes.name.push_back(f.trace.strings.intern("node"));
  f.trace.source.path = "original.json";
  f.trace.source.format = "chrome_trace";
  const TempFolder folder;
  const Run run = run_of(std::move(f));
  REQUIRE(writer("perfetto").write(run, folder / "out.pftrace", {}));
  const Trace back = std::move(opened(folder / "out.pftrace").traces[0]);
  CHECK_EQ(back.nodes.size(), 0);  // execution graphs: the summary says so
  CHECK(writer("perfetto").summary.find("not execution graphs") != std::string_view::npos);
  CHECK_EQ(back.name(static_cast<SliceId>(0)), "control \\x01 byte");  // texts are made visible, and it is told
  CHECK_EQ(back.issues.back().code, "repaired_text");
  CHECK_EQ(back.source.format, "perfetto");  // where and how the first file lay
  CHECK_EQ(back.source.path, folder / "out.pftrace");
}

}  // namespace stepscope::write
