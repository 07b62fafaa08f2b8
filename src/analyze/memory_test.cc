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
  CHECK(peak.rows[0][5] == Value(Ns{1'000}));
  CHECK(cell(answer, "largest", "op", "aten::mm", "lifetime_ns") == Value(Ns{210}));
  CHECK(cell(answer, "largest", "op", "aten::mm", "at_peak") == Value(true));
  CHECK(answer.series.size() >= 2);
  CHECK(cell(answer, "by_category", "category", "unknown", "at_peak_bytes") == Value(Ns{1'800}));
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

// A step with marked passes: forward 0..300, backward 300..600, optimizer 600..900, from the given start.
struct Passes : Memory {
  TrackId engine = f.host("2");

  void step(Ns number) {
    const Ns t = number * 1'000;
    f.annotation(cpu, "ProfilerStep#" + std::to_string(number), t, 1'000);
    f.annotation(cpu, "forward", t, 300);
    f.annotation(cpu, "backward", t + 300, 300);
    f.annotation(cpu, "Optimizer.step#Adam.step", t + 600, 300);
  }
  void op(std::string_view name, Ns start, Ns length) { f.op(cpu, name, start, length); }
  Value category(Ns bytes, const Answer& answer) {
    const Table& table = *answer.table("largest");
    for (const auto& row : table.rows) {
      if (row[2] == Value(bytes)) return row[5];
    }
    return {};
  }
};

TEST_CASE("memory: what it is used for follows from where it is made and where it is freed") {
  Passes m;
  for (Ns number = 0; number < 3; number++) m.step(number);
  m.op("aten::relu", 10, 20);
  m.event(12, 1, 1'001);  // freed in backward
  m.op("aten::add", 40, 20);
  m.event(42, 2, 1'002);  // freed in forward, by another operator
  m.event(100, 2, -1'002);
  m.op("aten::convolution", 110, 50);
  m.op("aten::empty", 115, 5);
  m.event(117, 3, 1'003);  // freed before the convolution ends
  m.event(150, 3, -1'003);
  m.op("aten::sum", 170, 20);
  m.event(172, 4, 1'004);  // freed before the sum ends
  m.event(180, 4, -1'004);
  m.op("aten::mm", 310, 20);
  m.event(312, 5, 1'005);  // outlives backward
  m.op("aten::mul", 340, 20);
  m.event(342, 6, 1'006);  // freed in backward
  m.event(350, 1, -1'001);
  m.event(360, 6, -1'006);
  m.op("aten::zeros_like", 610, 20);
  m.event(612, 7, 1'007);  // kept
  m.op("aten::sqrt", 640, 20);
  m.event(642, 8, 1'008);  // freed in the optimizer's step
  m.event(700, 8, -1'008);
  m.event(1'950, 5, -1'005);
  const Answer answer = ask(run_of(std::move(m.f)), "memory");
  const auto is = [&](Ns bytes, const char* category) {
    CHECK_MESSAGE(m.category(bytes, answer) == Value(std::string(category)), bytes);
  };
  is(1'001, "activation");
  is(1'002, "temporary");
  is(1'003, "workspace");
  is(1'004, "temporary");
  is(1'005, "gradient");
  is(1'006, "temporary");
  is(1'007, "optimizer state");
  is(1'008, "temporary");
  CHECK(cell(answer, "largest", "category", "workspace", "op") == Value(std::string("aten::convolution")));  // no empty
}

TEST_CASE("memory: without a backward pass nothing is kept for one") {
  Memory m;
  m.f.annotation(m.cpu, "forward", 0, 300);
  m.f.op(m.cpu, "aten::relu", 10, 20);
  m.event(12, 1, 1'001);
  m.event(500, 1, -1'001);
  m.event(520, 2, 5);
  const Answer answer = ask(run_of(std::move(m.f)), "memory");
  CHECK(cell(answer, "evidence", "category", "unknown", "bytes") == Value(Ns{1'006}));
}

TEST_CASE("memory: who leaves something behind in many steps, and from where") {
  Memory m;
  m.total = 1 << 24;
  for (int step = 0; step < 8; step++) {
    const Ns t = step * 1'000;
    m.f.annotation(m.cpu, "ProfilerStep#" + std::to_string(step), t, 1'000);
    m.f.slice(m.cpu, "python_function", "train.py(12): main", t + 5, 900);
    m.f.slice(m.cpu, "python_function", "train.py(7): remember", t + 6, 100);
    m.f.op(m.cpu, "aten::clone", t + 10, 20);
    m.event(t + 12, 1 + step, 1 << 20);
    m.f.op(m.cpu, "aten::relu", t + 40, 20);
    m.event(t + 42, 100 + step, 1 << 19);
    m.event(t + 900, 100 + step, -(1 << 19));
  }
  const Answer answer = ask(run_of(std::move(m.f)), "memory");
  REQUIRE(answer.table("growth")->rows.size() == 1);
  CHECK(cell(answer, "growth", "op", "aten::clone", "steps") == Value(Ns{7}));  // the last one still works with it
  CHECK(cell(answer, "growth", "op", "aten::clone", "bytes_per_step") == Value(Ns{1 << 20}));
  CHECK(cell(answer, "growth", "op", "aten::clone", "stack") ==
        Value(std::string("train.py(7): remember < train.py(12): main")));
  REQUIRE(answer.findings.size() == 1);
  CHECK(answer.findings[0].where.op == "aten::clone");
}

TEST_CASE("memory: the peak by module, of a gradient that of the forward operator") {
  Memory m;
  m.total = 100;  // before the recording
  const TrackId engine = m.f.host("2");
  m.f.op(m.cpu, "stepscope.module: Net (Net)", 0, 100);
  m.f.op(m.cpu, "stepscope.module: layers.0 (Linear)", 10, 30);
  m.f.op(m.cpu, "aten::linear", 12, 20, {.sequence = 5});
  m.event(14, 1, 300);
  m.f.op(m.cpu, "aten::clone", 60, 10);
  m.event(64, 2, 50);
  m.f.op(engine, "autograd::engine::evaluate_function: AddmmBackward0", 200, 50, {.sequence = 5, .fwd_thread = 1});
  m.f.op(engine, "aten::mm", 210, 20);
  m.event(215, 3, 80);
  m.f.trace.memory.track[2] = engine;
  m.f.op(m.cpu, "aten::zeros", 300, 20);
  m.event(305, 4, 7);
  m.f.trace.held_before = {{"cuda:0", "parameter", "layers.0", 60},
                           {"cuda:1", "parameter", "layers.0", 9},
                           {"cuda:0", "what is this", "", 1},
                           {"cuda:0", "optimizer state", "", 500}};  // more than there was
  const Answer answer = ask(run_of(std::move(m.f)), "memory");
  const auto of = [&](const char* module, const char* column) {
    return cell(answer, "by_module", "module", module, column);
  };
  CHECK(of("Net", "bytes") == Value(Ns{530}));
  CHECK(of("Net", "parameter_bytes") == Value(Ns{60}));
  CHECK(of("Net", "optimizer_bytes") == Value(Ns{40}));
  CHECK(of("Net", "own_bytes") == Value(Ns{90}));
  CHECK(of("layers.0", "bytes") == Value(Ns{440}));
  CHECK(of("layers.0", "parent") == Value(std::string("layers")));
  CHECK(of("layers.0", "class") == Value(std::string("Linear")));
  const auto& rows = answer.table("by_module")->rows;
  CHECK(rows.back()[2] == Value());       // in no module:
  CHECK(rows.back()[3] == Value(Ns{7}));  // the last one
  CHECK(answer.table("by_stack")->rows.empty());
  CHECK(cell(answer, "by_category", "category", "parameter", "at_peak_bytes") == Value(Ns{60}));
  CHECK(cell(answer, "by_category", "category", "optimizer state", "mean_bytes") == Value(Ns{40}));
  CHECK(cell(answer, "at_peak", "category", "parameter", "bytes") == Value(Ns{60}));
}

TEST_CASE("memory: the peak by the place in the program") {
  Memory m;
  m.f.slice(m.cpu, "python_function", "train.py(12): main", 5, 900);
  m.f.op(m.cpu, "aten::clone", 10, 20);
  m.event(12, 1, 100);
  m.f.op(m.cpu, "aten::relu", 40, 20);
  m.event(42, 2, 50);
  m.f.op(m.cpu, "aten::relu", 950, 20);
  m.event(960, 3, 30);
  const Answer answer = ask(run_of(std::move(m.f)), "memory");
  CHECK(cell(answer, "by_stack", "stack", "train.py(12): main", "bytes") == Value(Ns{150}));
  CHECK(cell(answer, "by_stack", "stack", "train.py(12): main", "allocations") == Value(Ns{2}));
  REQUIRE(answer.table("by_stack")->rows.size() == 2);
  CHECK(answer.table("by_stack")->rows[1][6] == Value());
}

}  // namespace
}  // namespace stepscope
