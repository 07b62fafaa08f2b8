// A job made by hand, for tests of causes: a thread that makes steps, one operator or piece of code after the other.
// Not part of the program.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "derive/derive.h"
#include "derive/derive_run.h"
#include "diagnose/cause.h"
#include "diagnose/diagnosis.h"
#include "diagnose/findings_fixture.h"
#include "model/trace_fixture.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {

inline constexpr std::int64_t us = 1000, ms = 1000 * us;

// Sizes of one operand, and of a product's two.
inline constexpr std::string_view kSquare = "[[256, 256]]", kTwoSquares = "[[256, 256], [256, 256]]";

// What a gain is told as that the graph played has, of what is in each step: docs/advice.md, "Gain".
inline double at_most(double played) { return played / (1 - kRestFaster * (1 - 1 / played)); }

// That high end, before the range was put around the speedup of the middle step.
inline double fast_end(const Gain& gain) {
  const double expected = (gain.speedup_low + gain.speedup_high) / 2;
  return 1 / (2 / expected - 1 / gain.speedup_low);
}

// A thread that makes steps, one operator or piece of code after the other.
class Thread {
 public:
  TraceFixture f;

  explicit Thread(bool frames = false) : frames_(frames), cpu_(f.host("1")) {}

  void begin_step() { begin_ns_ = at_ns_; }
  void end_step() {
    f.slice(cpu_, "user_annotation", "ProfilerStep#" + std::to_string(number_++), begin_ns_, at_ns_ - begin_ns_);
  }
  // A range around what comes until its end, which may be ranges.
  void begin_range() { ranges_ns_.push_back(at_ns_); }
  void end_range(std::string_view name) {
    f.annotation(cpu_, name, ranges_ns_.back(), at_ns_ - ranges_ns_.back());
    ranges_ns_.pop_back();
  }
  // With the frames of `code` around it, outermost first.
  void op(std::string_view name, std::int64_t ns, std::vector<std::string> code = {}, OpIds ids = {}) {
    put_frames(code, ns);
    f.op(cpu_, name, at_ns_, ns, ids);
    at_ns_ += ns;
  }
  // One call of the functions of `code`, outermost first, around all that `body` does.
  template <class Body>
  void call(const std::vector<std::string>& code, const Body& body) {
    const std::int64_t from_ns = at_ns_;
    body();
    for (const std::string& frame : code) {
      if (frames_) f.slice(cpu_, "python_function", frame, from_ns, at_ns_ - from_ns);
    }
  }
  void code(std::int64_t ns, std::vector<std::string> code = {}) {
    put_frames(code, ns);
    at_ns_ += ns;
  }
  // An operator with another one in it, which takes all of its time but two microseconds.
  void nested(std::string_view name, std::string_view inner, std::int64_t ns, OpIds ids = {}, OpIds inner_ids = {}) {
    f.op(cpu_, name, at_ns_, ns, ids);
    f.op(cpu_, inner, at_ns_ + us, ns - 2 * us, inner_ids);
    at_ns_ += ns;
  }
  // Memory of the host, let go now, or taken by the operator that comes.
  void freed(std::int64_t bytes, std::int64_t address = 0) { memory(-bytes, address); }
  void taken(std::int64_t bytes, std::int64_t address) { memory(bytes, address); }
  void range(std::string_view name, std::int64_t ns) {
    f.slice(cpu_, "user_annotation", name, at_ns_, ns);
    at_ns_ += ns;
  }

 private:
  void memory(std::int64_t bytes, std::int64_t address) {
    MemoryEvents& rows = f.trace.memory;
    rows.time_ns.push_back(at_ns_);
    rows.track.push_back(cpu_);
    rows.bytes.push_back(bytes);
    rows.address.push_back(address);
    rows.total_allocated.push_back(kAbsent);
    rows.total_reserved.push_back(kAbsent);
    rows.device_type.push_back(0);
    rows.device_index.push_back(-1);
  }
  void put_frames(const std::vector<std::string>& code, std::int64_t ns) {
    for (const std::string& frame : code) {
      if (frames_) f.slice(cpu_, "python_function", frame, at_ns_, ns);
    }
  }

  bool frames_;
  TrackId cpu_;
  std::int64_t at_ns_ = 0, begin_ns_ = 0, number_ = 1;
  std::vector<std::int64_t> ranges_ns_;  // that are open: when they began
};

// Of a trace that was made by hand.
inline Run derived(TraceFixture f) {
  Run run;
  run.traces.push_back(std::move(f.trace));
  REQUIRE(derive::derive(run.traces[0], {}));
  derive::derive_run(run, 1);
  return run;
}

template <class Step>
Run run_of(Step step, bool frames = true, bool steps = true) {
  Run run;
  Thread timed;
  for (int i = 0; i < 4; i++) {
    timed.begin_step();
    step(timed);
    if (steps) timed.end_step();
  }
  run.traces.push_back(std::move(timed.f.trace));
  REQUIRE(derive::derive(run.traces[0], {}));
  if (frames) {
    Thread with_frames(true);
    with_frames.begin_step();
    step(with_frames);
    if (steps) with_frames.end_step();
    with_frames.f.trace.code = {{"train.py", 1, "", 0}, {"train.py", 10, "sorted", 14}};
    run.stack_steps.push_back(std::move(with_frames.f.trace));
    REQUIRE(derive::derive(run.stack_steps[0], {}));
  }
  derive::derive_run(run, 1);
  return run;
}

inline Answer advice_of(const Run& run) {
  const simulate::Predictor predictor(run);
  auto made = advice(run, predictor);
  if (!made) FAIL(to_text(made.error()));
  return *std::move(made);
}

}  // namespace stepscope::diagnose
