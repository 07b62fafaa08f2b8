// What recording cost, on traces made by hand and marks of steps that nobody recorded.
#include "simulate/recording_cost.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "derive/derive.h"
#include "derive/derive_run.h"
#include "model/settings.h"
#include "model/trace_fixture.h"
#include "simulate/predict.h"
#include "simulate/usual_step.h"

namespace stepscope::simulate {
namespace recording_cost_test {
namespace {

constexpr std::int64_t us = 1000, ms = 1000 * us;

// Marks of a step that begins there, of passes that take so long each and a rest.
void mark(TraceFixture& marks, TrackId lane, std::int64_t at_ns, std::int64_t pass_ns, std::int64_t rest_ns) {
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    marks.annotation(lane, to_string(phase), at_ns + (phase == Phase::backward ? pass_ns : 0), pass_ns);
    marks.trace.slices.phase.push_back(static_cast<std::uint8_t>(phase));
  }
  const auto number = static_cast<std::int64_t>(marks.trace.steps.size());
  marks.trace.steps.push_back(
      {.name = "step", .number = number, .start_ns = at_ns, .end_ns = at_ns + 2 * pass_ns + rest_ns});
}

// Of a recording and the marks of all steps, on one clock.
Run run_of(TraceFixture& recorded, TraceFixture& marks) {
  Run run;
  run.traces.push_back(std::move(recorded.trace));
  run.traces[0].clock_base_ns = 0;
  run.history.push_back(std::move(marks.trace));
  REQUIRE(derive::derive(run.traces[0], {}));
  derive::derive_run(run, 1);
  return run;
}

// Taken off work that took more than 50 ms, and off all other, in all steps.
std::pair<double, double> taken_of_long_ms(const Run& run) {
  const Predictor predictor(run);
  REQUIRE(predictor.windows().size() == 1);
  const RecordingCost cost = recording_cost(run, predictor.graph(), predictor.windows()[0]);
  double own_ms = 0, others_ms = 0;
  for (std::uint32_t node = 0; node < cost.node_ns.size(); node++) {
    const bool is_long = predictor.graph().costs.cost_ns[node] > 50 * ms;
    (is_long ? own_ms : others_ms) += static_cast<double>(cost.node_ns[node]) / 1e6;
  }
  return {own_ms, others_ms};
}

// Four recorded steps: passes of 3 ms each and 1 ms of a loop behind them. Others have passes of 1 ms.
struct Job {
  Run run;
  explicit Job(bool on_device) {
    TraceFixture f, marks;
    const TrackId cpu = f.host("1"), gpu = f.stream("7"), lane = marks.host("1");
    std::int64_t at = 0, call = 0;
    const auto work = [&](int count) {
      for (int i = 0; i < count; i++) {
        f.op(cpu, "aten::mul", at, 100 * us);
        if (on_device) {
          f.launch(cpu, "cudaLaunchKernel", at + 10 * us, 10 * us, ++call);
          f.kernel(gpu, "mul_kernel", at + 30 * us, 5 * us, call);
        }
        at += 100 * us;
      }
    };
    for (int step = 0; step < 4; step++) {
      const std::int64_t begin = at;
      mark(marks, lane, begin, 3 * ms, 1 * ms);
      for (const std::string_view pass : {"forward", "backward"}) {
        f.annotation(cpu, pass, at, 3 * ms);
        work(30);
      }
      work(10);
      f.annotation(cpu, "ProfilerStep#" + std::to_string(step), begin, at - begin);
    }
    for (int step = 0; step < 100; step++) mark(marks, lane, 1000 * ms + 3 * ms * step, 1 * ms, 1 * ms);
    run = run_of(f, marks);
  }

  // Taken off the passes and off the loop, per step.
  std::pair<double, double> taken_ms() const {
    const Predictor predictor(run);
    REQUIRE(predictor.windows().size() == 1);
    const RecordingCost cost = recording_cost(run, predictor.graph(), predictor.windows()[0]);
    double passes = 0, loop = 0;
    for (std::uint32_t node = 0; node < cost.node_ns.size(); node++) {
      const bool in_pass = predictor.graph().start_ns[node] % (7 * ms) < 6 * ms;
      (in_pass ? passes : loop) += static_cast<double>(cost.node_ns[node]) / 4e6;
    }
    return {passes, loop};
  }
};

TEST_CASE("recording cost: of a job with a device it is taken off the parts of a step that are longer for it") {
  const auto [passes, loop] = Job(true).taken_ms();
  CHECK(passes == doctest::Approx(4).epsilon(0.05));
  CHECK(loop == doctest::Approx(0).epsilon(0.05));
}

TEST_CASE("recording cost: without a device it is taken off all that is noted") {
  const auto [passes, loop] = Job(false).taken_ms();
  CHECK(passes + loop == doctest::Approx(4).epsilon(0.05));
  CHECK(loop == doctest::Approx(4.0 / 7).epsilon(0.1));
}

TEST_CASE(
    "recording cost: what a usual step takes on a machine that others use, and where steps differ by themselves") {
  // Five recorded steps of 10 ms, and a hundred that take as much as told.
  const auto usual_ms = [](const auto& step_ns) {
    TraceFixture f, marks;
    const TrackId cpu = f.host("1"), lane = marks.host("1");
    std::int64_t at = 0;
    for (int step = 0; step < 5; step++, at += 10 * ms) {
      mark(marks, lane, at, 4 * ms, 2 * ms);
      f.annotation(cpu, "ProfilerStep#" + std::to_string(step), at, 10 * ms);
      f.op(cpu, "aten::mm", at, 9 * ms);
    }
    at = 1000 * ms;
    for (int i = 0; i < 100; i++) {
      mark(marks, lane, at, 4 * ms, step_ns(i) - 8 * ms);
      at += step_ns(i);
    }
    const Run run = run_of(f, marks);
    const Predictor predictor(run);
    REQUIRE(predictor.windows().size() == 1);
    return recording_cost(run, predictor.graph(), predictor.windows()[0]).usual_ns / 1e6;
  };
  // Ten steps of each 25 are held up.
  const auto held_up = [](int i) { return i % 25 < 10 ? 16 * ms : 10 * ms + i % 3 * (ms / 10); };
  CHECK(usual_ms(held_up) == doctest::Approx(10.1).epsilon(0.01));
  // Every eighth takes twice as long, which most series of five have.
  CHECK(usual_ms([](int i) { return i % 8 == 0 ? 20 * ms : 10 * ms; }) == doctest::Approx(12).epsilon(0.01));
  // Batches of other lengths: as many longer as shorter.
  CHECK(usual_ms([](int i) { return 11 * ms + (i * 37 % 101 - 50) * (ms / 20); }) == doctest::Approx(11).epsilon(0.02));
}

TEST_CASE("recording cost: a call of a module, which hooks note, costs as much as nine operators") {
  constexpr int kSteps = 4, kCalls = 10, kOps = 90;
  constexpr std::int64_t kCallsNs = kCalls * 150 * us, kStepNs = kCallsNs + kOps * 50 * us;
  TraceFixture f, marks;
  const TrackId cpu = f.host("1"), lane = marks.host("1");
  std::int64_t at = 0;
  for (int step = 0; step < kSteps; step++) {
    mark(marks, lane, at, 2 * ms, kStepNs - 4 * ms);
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), at, kStepNs);
    for (int i = 0; i < kCalls; i++, at += 150 * us) {
      f.annotation(cpu, "stepscope.module: " + std::to_string(i), at, 150 * us);
      f.op(cpu, "aten::mm", at + 50 * us, 50 * us);
    }
    for (int i = 0; i < kOps; i++, at += 50 * us) f.op(cpu, "aten::mul", at, 50 * us);
  }
  for (int step = 0; step < 100; step++) mark(marks, lane, 1000 * ms + 5 * ms * step, 2 * ms, kStepNs - 5 * ms);
  const Run run = run_of(f, marks);
  const Predictor predictor(run);
  REQUIRE(predictor.windows().size() == 1);
  const RecordingCost cost = recording_cost(run, predictor.graph(), predictor.windows()[0]);
  double calls_ms = 0, all_ms = 0;
  for (std::uint32_t node = 0; node < cost.node_ns.size(); node++) {
    const double taken_ms = static_cast<double>(cost.node_ns[node]) / kSteps / 1e6;
    all_ms += taken_ms;
    if (predictor.graph().start_ns[node] % kStepNs < kCallsNs) calls_ms += taken_ms;
  }
  CHECK(all_ms == doctest::Approx(1).epsilon(0.02));
  // Of each call both ends and those of its operator, ten operators' worth, beside 90 operators.
  CHECK(calls_ms == doctest::Approx(1.0 * 100 / 190).epsilon(0.03));
}

// Five recorded steps of 40 products of 100 us with code between them; in one of them something holds one of these up
// for 60 ms. Usual steps are as long as the others. What is taken off
// the one that is held up, and off all others, in ms.
std::pair<double, double> held_up_ms(bool held) {
  TraceFixture f, marks;
  const TrackId cpu = f.host("1"), lane = marks.host("1");
  std::int64_t at = 0;
  for (int step = 0; step < 5; step++) {
    const std::int64_t begin = at;
    for (int i = 0; i < 40; i++) {
      const std::int64_t op_ns = held && step == 2 && i == 20 ? 60 * ms : 100 * us;
      f.op(cpu, i % 2 == 0 ? "aten::mm" : "aten::add", at, op_ns);
      at += op_ns + 10 * us;
    }
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), begin, at - begin);
    mark(marks, lane, begin, 1 * ms, at - begin - 2 * ms);
  }
  for (int step = 0; step < 100; step++) mark(marks, lane, 1000 * ms + 5 * ms * step, 1 * ms, 2 * ms + 400 * us);
  return taken_of_long_ms(run_of(f, marks));
}

TEST_CASE("recording cost: what holds up one operator of one step is taken off that operator alone") {
  const auto [own, others] = held_up_ms(true);
  CHECK(own == doctest::Approx(59.9).epsilon(0.01));
  CHECK(std::abs(others) < 0.2);
  CHECK(std::abs(held_up_ms(false).second) < 0.2);
}

// Five recorded steps of 10 ms of work each, with a collection of 98 ms in one of them. Others like that take 120 ms,
// one in so many. What is added to the collection and to all else, in ms.
std::pair<double, double> added_ms(std::string_view name, int one_in = 5) {
  TraceFixture f, marks;
  const TrackId cpu = f.host("1"), lane = marks.host("1");
  std::int64_t at = 0;
  for (int step = 0; step < 5; step++) {
    const std::int64_t begin = at;
    if (step == 1) f.op(cpu, name, at, 98 * ms);
    if (step == 1) at += 98 * ms;
    for (int i = 0; i < 10; i++, at += 1 * ms) f.op(cpu, "aten::mm", at, 1 * ms);
    f.annotation(cpu, "ProfilerStep#" + std::to_string(step), begin, at - begin);
    mark(marks, lane, begin, 1 * ms, at - begin - 2 * ms);
  }
  std::int64_t begin = 1000 * ms;
  for (int step = 0; step < 100; step++) {
    const std::int64_t step_ns = step % one_in == 0 ? 120 * ms : 10 * ms;
    mark(marks, lane, begin, 1 * ms, step_ns - 2 * ms);
    begin += step_ns;
  }
  const auto [own_ms, others_ms] = taken_of_long_ms(run_of(f, marks));
  return {-own_ms, -others_ms};
}

TEST_CASE(
    "recording cost: a collection of garbage is as long as those of usual steps, an operator as it was recorded") {
  const auto [collection, others] = added_ms("Python garbage collection");
  CHECK(collection == doctest::Approx(12).epsilon(0.02));
  CHECK(std::abs(others) < 0.2);
  CHECK(std::abs(added_ms("aten::convolution").first) < 0.2);  // a tenth is no difference there
}

TEST_CASE("recording cost: a long step counts as often as its kind comes, be it code or an operator") {
  // 110 ms more in one step of 20, of which five have 27.5.
  for (const std::string_view name : {"Python garbage collection", "aten::sort"}) {
    CAPTURE(name);
    const auto [own, others] = added_ms(name, 20);
    CHECK(own == doctest::Approx(27.5 - 98).epsilon(0.04));
    CHECK(std::abs(others) < 3);  // a twentieth of what all pieces take counts as a difference
  }
  // What comes twice in all steps is the machine's: the code is that of usual steps, and nothing is known of others.
  CHECK(added_ms("aten::sort", 70).first < -85);
}

TEST_CASE("recording cost: where a recording keeps memory that went back before, the steps before it are usual") {
  const auto usual_ms = [](std::string_view around, int after, std::string_view page_ns = "") {
    TraceFixture f, marks;
    if (!page_ns.empty()) f.trace.metadata.push_back({"stepscope_page_ns", std::string(page_ns)});
    const TrackId cpu = f.host("1"), lane = marks.host("1");
    for (int step = 0; step < 30; step++) mark(marks, lane, step * 3 * ms, 1 * ms, 1 * ms);
    for (int step = 0; step < 5; step++) {
      const std::int64_t begin = 100 * ms + step * 2 * ms;
      f.op(cpu, "aten::mm", begin, 2 * ms);
      f.annotation(cpu, "ProfilerStep#" + std::to_string(30 + step), begin, 2 * ms);
      mark(marks, lane, begin, 1 * ms, 0);
    }
    for (int step = 0; step < after; step++) mark(marks, lane, 200 * ms + step * 2 * ms, 1 * ms, 0);
    marks.trace.metadata.push_back({std::string(kPageFaults), "[52, 4096]"});
    if (!around.empty()) marks.trace.metadata.push_back({std::string(kPageFaultsAround), std::string(around)});
    const Run run = run_of(f, marks);
    const Predictor predictor(run);
    REQUIRE(predictor.windows().size() == 1);
    return usual_step(run, predictor.windows()[0]).work_ns / 1e6;
  };
  constexpr std::string_view kKept = R"({"before": [30, 4096], "after": [20, 0], "recording_ns": 95000000})";
  CHECK(usual_ms(kKept, 60) == doctest::Approx(3));
  CHECK(usual_ms(kKept, 24) == doctest::Approx(3));
  CHECK(usual_ms("", 60) == doctest::Approx(2));
  for (const std::string_view other : {R"({"before": [30, 20], "after": [20, 0], "recording_ns": 95000000})",  // as few
                                       R"({"before": [1, 4096], "after": [20, 0], "recording_ns": 95000000})",
                                       R"({"before": [7, 4096], "after": [20, 0], "recording_ns": 95000000})",
                                       R"({"before": [30, 4096], "after": [0, 0], "recording_ns": 95000000})",
                                       R"({"before": [30, 4096], "after": [20, 0], "recording_ns": -5})",
                                       R"({"before": [-30, 4096], "after": [20, 0], "recording_ns": 95000000})",
                                       R"({"before": 30, "recording_ns": "x"})", "[1, 2]", "{"}) {
    CAPTURE(other);
    CHECK(usual_ms(other, 60) == doctest::Approx(2));
  }
  // Recorded from its beginning on: from 24 ms on in steps of 3 ms, as those before the recording are. What a page
  // takes is known; an operator and its step take 4 us to record.
  const auto from_its_beginning = [&](std::string_view faults, std::string_view page_ns) {
    return usual_ms(fmt::format(R"({{"recorded": {}, "after": [60, 0], "recording_ns": 23500000}})", faults), 60,
                    page_ns);
  };
  CHECK(from_its_beginning("[5, 2048]", "250") == doctest::Approx(2.512));
  CHECK(from_its_beginning("[5, 40960]", "250") == doctest::Approx(2.996));  // no more than they are longer
  CHECK(from_its_beginning("[5, 2048]", "") == doctest::Approx(2));
  CHECK(from_its_beginning("[2, 2048]", "250") == doctest::Approx(2));  // too few
  CHECK(from_its_beginning("[5, 300]", "250") == doctest::Approx(2));   // hardly any
  // The heap was left as it had been: what was recorded says nothing of other steps.
  CHECK(usual_ms(R"({"recorded": [5, 2048], "after": [60, 0], "recording_ns": 23500000, "kept": false})", 60, "250") ==
        doctest::Approx(2));
}

}  // namespace
}  // namespace recording_cost_test
}  // namespace stepscope::simulate
