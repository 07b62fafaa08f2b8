#include <doctest/doctest.h>

#include "analyze/answer_fixture.h"

namespace stepscope {
namespace {

using namespace answer_fixture;

struct Memory {
  TraceFixture f;
  TrackId cpu = f.host("1");
  Ns total = 0;
  bool totals = true;

  void event(Ns time, Ns address, Ns bytes) {
    MemoryEvents& events = f.trace.memory;
    total += bytes;
    events.time_ns.push_back(time);
    events.track.push_back(cpu);
    events.bytes.push_back(bytes);
    events.address.push_back(address);
    events.total_allocated.push_back(totals ? total : kAbsent);
    events.total_reserved.push_back(totals ? 10'000 : kAbsent);
    events.device_type.push_back(1);
    events.device_index.push_back(0);
  }
};

TEST_CASE("memory: what is alive at the peak, and what was there before the recording") {
  Memory m;
  m.total = 1'000;  // held when the recording begins
  m.f.annotation(m.cpu, "ProfilerStep#7", 0, 1'000);
  m.f.op(m.cpu, "aten::mm", 100, 100);
  m.event(110, 1, 300);
  m.f.op(m.cpu, "aten::add", 300, 100);
  m.event(310, 2, 500);
  m.event(320, 1, -300);
  m.event(330, 1, 200);  // the same address again
  m.event(900, 9, -50);  // allocated before the recording
  const Run run = run_of(std::move(m.f));
  const Answer answer = ask(run, "memory");
  CHECK(ns(answer, "event_count") == 5);
  CHECK(ns(answer, "peak_device_bytes") == 1'800);
  CHECK(ns(answer, "unknown_free_count") == 1);
  CHECK(cell(answer, "devices", "device", "cuda:0", "peak_t_ns") == Value(Ns{310}));
  CHECK(cell(answer, "devices", "device", "cuda:0", "peak_step") == Value(std::string("ProfilerStep#7")));
  CHECK(cell(answer, "devices", "device", "cuda:0", "unknown_freed_bytes") == Value(Ns{50}));
  CHECK(cell(answer, "devices", "device", "cuda:0", "not_freed") == Value(Ns{2}));
  CHECK(cell(answer, "devices", "device", "cuda:0", "peak_reserved_bytes") == Value(Ns{10'000}));
  CHECK(cell(answer, "at_peak", "op", "aten::mm", "bytes") == Value(Ns{300}));
  CHECK(cell(answer, "at_peak", "op", "aten::add", "bytes") == Value(Ns{500}));  // not the 200 of later
  const Table& peak = *answer.table("at_peak");
  REQUIRE(peak.rows.size() == 3);
  CHECK(peak.rows[0][2] == Value());  // nobody in the recording allocated the largest part
  CHECK(peak.rows[0][4] == Value(Ns{1'000}));
  CHECK(cell(answer, "largest", "op", "aten::mm", "lifetime_ns") == Value(Ns{210}));
  CHECK(cell(answer, "largest", "op", "aten::mm", "at_peak") == Value(true));
  CHECK(answer.series.size() == 2);
}

TEST_CASE("memory: without totals the curve counts from the beginning, never below zero") {
  Memory m;
  m.totals = false;
  m.event(10, 9, -400);  // of before
  m.event(20, 1, 100);
  const Answer answer = ask(run_of(std::move(m.f)), "memory");
  CHECK(cell(answer, "devices", "device", "cuda:0", "totals") == Value(false));
  CHECK(cell(answer, "devices", "device", "cuda:0", "first_bytes") == Value(Ns{0}));
  CHECK(cell(answer, "devices", "device", "cuda:0", "peak_bytes") == Value(Ns{100}));
  CHECK(cell(answer, "devices", "device", "cuda:0", "peak_reserved_bytes") == Value());
  CHECK(answer.notes.size() == 1);
}

TEST_CASE("memory: growth over steps is a finding, a sawtooth is not") {
  for (const bool leak : {true, false}) {
    Memory m;
    m.total = 1 << 24;
    for (int step = 0; step < 8; step++) {
      const Ns t = step * 1'000;
      m.f.annotation(m.cpu, "ProfilerStep#" + std::to_string(step), t, 1'000);
      m.event(t + 10, 1 + step, 1 << 20);
      if (!leak) m.event(t + 900, 1 + step, -(1 << 20));
    }
    const Answer answer = ask(run_of(std::move(m.f)), "memory");
    REQUIRE(answer.findings.size() == (leak ? 1 : 0));
    if (leak) CHECK(answer.findings[0].evidence[0].value == Value(Ns{1 << 20}));
  }
}

TEST_CASE("memory: nothing recorded is unknown, not 0") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 0, 10);
  const Answer answer = ask(run_of(std::move(f)), "memory");
  CHECK(unknown(answer, "event_count"));
  CHECK(unknown(answer, "peak_device_bytes"));
  CHECK(answer.notes.size() == 1);
}

}  // namespace
}  // namespace stepscope
