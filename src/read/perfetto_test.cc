// Perfetto traces of other writers: what is read of them, and what is missing or makes no sense in them.
#include <doctest/doctest.h>

#include "read/perfetto_fixture.h"

namespace stepscope::read {

TEST_CASE("perfetto: track events of another writer are read, and what was not is told") {
  PerfettoFile file = process_and_thread();
  file.begin(100, 11, "outer").begin(150, 11, "inner").end(180, 11).end(300, 11);
  file.event(120, wire::event::instant, 11, [](ProtoWriter& out) { out.text(wire::event::name, "mark"); });
  file.packet([](ProtoWriter& out) {
    out.begin(wire::packet::track);
    out.number(wire::track::uuid, 12);
    out.number(wire::track::parent, 10);
    out.text(wire::track::name, "load");
    out.begin(wire::track::counter);
    out.number(wire::counter::incremental, 1);
    out.end();
    out.end();
  });
  for (const int step : {5, 2}) {
    file.event(130 + step, wire::event::counter_sample, 12,
               [&](ProtoWriter& out) { out.number(wire::event::counter_value, static_cast<std::uint64_t>(step)); });
  }
  file.packet([](ProtoWriter& out) { out.text(1, "what a kernel recorded"); });
  REQUIRE(perfetto().recognizes(file.bytes()));
  const auto traces = read_bytes(file.bytes());
  REQUIRE(traces);
  const Trace& trace = traces->front();
  REQUIRE_EQ(trace.slices.size(), 2);
  CHECK_EQ(trace.name(static_cast<SliceId>(0)), "outer");
  CHECK_EQ(trace.slices.dur_ns[0], 200);
  CHECK_EQ(trace.slices.dur_ns[1], 30);
  const Track& track = trace.tracks[static_cast<std::size_t>(trace.slices.track[0])];
  CHECK_EQ(trace.strings[track.process], "42");
  CHECK_EQ(trace.strings[track.process_name], "browser");
  CHECK_EQ(trace.strings[track.thread], "43");
  CHECK_EQ(trace.strings[track.thread_name], "main");
  REQUIRE_EQ(trace.instants.size(), 1);
  CHECK_EQ(trace.strings[trace.instants.name[0]], "mark");
  REQUIRE_EQ(trace.counters.size(), 2);
  CHECK_EQ(trace.strings[trace.counters.name[1]], "load");
  CHECK_EQ(trace.counters.value[1], 7);  // told as what was added
  REQUIRE(issue(trace, "foreign_perfetto"));
  REQUIRE(issue(trace, "not_track_events"));
  CHECK(issue(trace, "not_track_events")->sentence.ends_with("ftrace 1"));
  CHECK_EQ(issue(trace, "not_track_events")->severity, Severity::lost);
  CHECK(issue(trace, "not_track_events")->offset.has_value());
}

TEST_CASE("perfetto: arrows, numbered names and clocks of their own") {
  PerfettoFile file = process_and_thread();
  file.packet([](ProtoWriter& out) {
    out.begin(wire::packet::clock_snapshot);
    for (const auto& [id, time] : {std::pair(wire::snapshot::boottime, 5000), std::pair(std::uint64_t{64}, 7)}) {
      out.begin(wire::snapshot::clocks);
      out.number(wire::snapshot::id, id);
      out.number(wire::snapshot::time, static_cast<std::uint64_t>(time));
      if (id == 64) out.number(wire::snapshot::incremental, 1);
      if (id == 64) out.number(wire::snapshot::multiplier, 1000);
      out.end();
    }
    out.end();
    out.begin(wire::packet::defaults);
    out.number(wire::defaults::clock, 64);
    out.begin(wire::defaults::event);
    out.number(wire::event::track, 11);
    out.end();
    out.end();
    out.begin(wire::packet::interned);
    out.begin(wire::interned::names);
    out.number(wire::interned::iid, 9);
    out.text(wire::interned::text, "by number");
    out.end();
    out.end();
  });
  const auto half = [&](std::uint64_t type, wire::Field flow) {
    file.packet([&](ProtoWriter& out) {
      out.number(wire::packet::timestamp, 3);  // since the one before
      out.begin(wire::packet::event);
      out.number(wire::event::type, type);
      if (type == wire::event::slice_begin) out.number(wire::event::name_iid, 9);
      if (flow != 0) out.fixed(flow, 0xfedcba9876543210);
      out.end();
    });
  };
  half(wire::event::slice_begin, wire::event::flows);
  half(wire::event::slice_end, 0);
  half(wire::event::slice_begin, wire::event::last_flows);
  half(wire::event::slice_end, 0);
  const auto traces = read_bytes(file.bytes());
  REQUIRE(traces);
  const Trace& trace = traces->front();
  REQUIRE_EQ(trace.slices.size(), 2);
  CHECK_EQ(trace.name(static_cast<SliceId>(1)), "by number");
  CHECK_EQ(trace.slices.start_ns[0], 8000);
  CHECK_EQ(trace.slices.start_ns[1], 14000);
  CHECK_EQ(trace.slices.dur_ns[1], 3000);
  REQUIRE_EQ(trace.flows.size(), 2);
  CHECK_EQ(trace.flows.phase[0], 's');
  CHECK_EQ(trace.flows.phase[1], 'f');
  CHECK_EQ(trace.flows.id[0], trace.flows.id[1]);
  CHECK_EQ(issue(trace, "unknown_text"), nullptr);
}

TEST_CASE("perfetto: what is missing or makes no sense is counted, with its place") {
  PerfettoFile file = process_and_thread();
  const std::size_t before = file.bytes().size();
  file.event(1, wire::event::slice_begin, 11, [](ProtoWriter& out) { out.number(wire::event::name_iid, 77); });
  file.begin(2, 11, "never ends").end(5, 11);
  file.end(6, 99);
  file.event(-5, wire::event::instant, 11, [](ProtoWriter&) {});
  file.event(5, 0, 11, [](ProtoWriter& out) { out.text(wire::event::legacy, ""); });
  file.packet([](ProtoWriter& out) { out.text(wire::packet::event, "\xff\xff"); });
  const auto traces = read_bytes(file.bytes() + "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  REQUIRE(traces);
  const Trace& trace = traces->front();
  CHECK_EQ(trace.slices.size(), 1);
  for (const std::string code : {"unknown_text", "unpaired_begin_end", "missing_time", "unknown_event_kind",
                                 "broken_packet", "cut_inside_packet"}) {
    CAPTURE(code);
    REQUIRE(issue(trace, code));
    CHECK(issue(trace, code)->offset.has_value());
  }
  CHECK_EQ(issue(trace, "unknown_text")->offset, before);
  CHECK_EQ(issue(trace, "cut_inside_packet")->offset, file.bytes().size());
  CHECK_EQ(issue(trace, "unpaired_begin_end")->count, 2);
}

}  // namespace stepscope::read
