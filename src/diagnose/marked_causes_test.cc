// Causes that the marks of all steps show, although the recorded steps are too few for them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "diagnose/steps_fixture.h"
#include "model/settings.h"
#include "model/telemetry.h"

namespace stepscope::diagnose {
namespace {

constexpr std::int64_t kBaseNs = 1'000 * ms;

// Marks of `count` steps far from the recording.
void mark(Run& run, int count, const std::function<std::int64_t(int)>& step_ns) {
  Trace history;
  std::int64_t at_ns = kBaseNs;
  for (int i = 0; i < count; i++) {
    history.steps.push_back({.name = "step", .number = i + 104, .start_ns = at_ns, .end_ns = at_ns + step_ns(i)});
    at_ns += step_ns(i);
  }
  run.history.push_back(std::move(history));
}

Run plain_job() {
  Run run = run_of([](Thread& thread) { thread.op("aten::mm", 10 * ms, {"train.py(30): main"}); });
  run.traces[0].clock_base_ns = 0;
  return run;
}

TEST_CASE("advice: steps that take far longer every so many, of which none is recorded") {
  Run run = plain_job();
  mark(run, 160, [](int i) { return i % 8 == 7 ? 90 * ms : 10 * ms; });
  const Answer unknown = advice_of(run);
  const Finding* found = find(unknown, "long_steps");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high == doctest::Approx(2).epsilon(0.03));  // 160 ms of 8 steps become 80
  run.stack_steps[0].code.push_back({"train.py", 20, "save", 25});
  const Answer saves = advice_of(run);
  found = find(saves, "checkpoint_in_loop");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 25);
  CHECK(found->confidence == "medium");
  CHECK(found->confidence_reason.find("without steps") == std::string::npos);
  CHECK(find(saves, "long_steps") == nullptr);
}

TEST_CASE("advice: long steps that wait for the data loader are those in which its workers start") {
  const auto job = [](std::int64_t waits_ns, std::string_view workers) {
    Run run = plain_job();
    mark(run, 160, [](int i) { return i % 8 == 7 ? 90 * ms : 10 * ms; });
    run.stack_steps[0].code.push_back({"train.py", 20, "(workers)", 24});
    run.traces[0].metadata.push_back({"stepscope_loader_workers", std::string(workers)});
    TraceFixture phases;
    const TrackId lane = phases.host("1");
    for (int i = 7; i < 160; i += 8) {
      phases.annotation(lane, "dataloader", run.history[0].steps[static_cast<std::size_t>(i)].start_ns, waits_ns);
      phases.trace.slices.phase.push_back(static_cast<std::uint8_t>(Phase::dataloader));
    }
    phases.trace.steps = run.history[0].steps;
    run.history[0] = std::move(phases.trace);
    return advice_of(run);
  };
  const Answer answer = job(75 * ms, "2");
  const Finding* found = find(answer, "loader_restarts");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 24);
  CHECK(find(answer, "long_steps") == nullptr);
  CHECK(find(job(5 * ms, "2"), "loader_restarts") == nullptr);
  CHECK(find(job(75 * ms, "8"), "loader_restarts") == nullptr);  // each brings a batch now, and none keeps up
}

// Of 160 steps each `every`th takes 90 ms in place of 10, and something is compiled in it; `row`: frame, attempt,
// guard.
Answer compiling(int every, std::int64_t compiles_ns, const std::function<std::string(int)>& row) {
  Run run = plain_job();
  mark(run, 160, [every](int i) { return i % every == every - 1 ? 90 * ms : 10 * ms; });
  std::string rows;
  for (int i = every - 1, number = 1; i < 160; i += every, number++) {
    const std::int64_t start_us = run.history[0].steps[static_cast<std::size_t>(i)].start_ns / us + 1000;
    rows += fmt::format(R"({}[{},{},{},"train.py",41,"forward"])", rows.empty() ? "" : ",", start_us, compiles_ns / us,
                        row(number));
  }
  run.history[0].metadata.push_back({std::string(kCompilations), "[" + rows + "]"});
  return advice_of(run);
}

std::string one_frame(int number) { return fmt::format(R"("0",{},"self.t == {}.5")", number, number); }

TEST_CASE("advice: long steps in which something is compiled again have the guard that failed") {
  const Answer answer = compiling(8, 75 * ms, one_frame);
  const Finding* found = find(answer, "recompilations");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 41);
  CHECK(found->evidence.back().text.find("self.t == 20.5") != std::string::npos);
  CHECK(found->next.value_or("").find("fill_()") != std::string::npos);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high == doctest::Approx(1 / (1 - 0.47)).epsilon(0.05));  // 75 of 160 ms
  CHECK(find(answer, "long_steps") == nullptr);
  const auto advised = [](std::string_view guard) {
    const Answer told = compiling(8, 75 * ms, [&](int number) { return fmt::format(R"("0",{},"{}")", number, guard); });
    const Finding* again = find(told, "recompilations");
    return again == nullptr ? std::string() : again->next.value_or("");
  };
  CHECK(advised("tensor 'x' size mismatch at index 1. expected 8, actual 9").find("dynamic=True") != std::string::npos);
  CHECK(advised("self.batch_size == 4").find("fill_()") != std::string::npos);
  CHECK(advised("GLOBAL_STATE changed: grad_mode").find("the same in all steps") != std::string::npos);
}

TEST_CASE("advice: what is compiled again once or twice is not told, nor is what long steps hardly do") {
  const Answer hardly = compiling(8, 1 * ms, one_frame);
  CHECK(find(hardly, "recompilations") == nullptr);
  CHECK(find(hardly, "long_steps") != nullptr);
  CHECK(find(compiling(60, 75 * ms, one_frame), "recompilations") == nullptr);  // twice
  const Answer others = compiling(8, 75 * ms, [](int number) { return fmt::format(R"("{}",1,"a == 1")", number); });
  CHECK(find(others, "recompilations") == nullptr);  // each piece of code once
  CHECK(find(others, "long_steps") != nullptr);
  const Answer negative = compiling(8, 75 * ms, [](int) { return R"("0",-1,"a == 1")"; });
  CHECK(find(negative, "recompilations") == nullptr);
  const Answer whole = compiling(8, 60'000'000 * ms, one_frame);  // longer than the job, and all of it at once
  const Finding* found = find(whole, "recompilations");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high <= 101);
}

TEST_CASE("advice: long steps at odd moments are the machine's, and recorded ones need no marks") {
  Run odd = plain_job();
  mark(odd, 160, [](int i) { return (static_cast<unsigned>(i) * 2654435761u >> 16) % 12 == 0 ? 90 * ms : 10 * ms; });
  CHECK(find(advice_of(odd), "long_steps") == nullptr);
  Run recorded = plain_job();
  mark(recorded, 160, [](int i) { return i % 4 == 3 ? 90 * ms : 10 * ms; });
  CHECK(find(advice_of(recorded), "long_steps") == nullptr);  // four steps in a row are
}

TEST_CASE("advice: what steps that nobody recorded take more is that of what differs among the recorded ones") {
  int step = 0;
  Run run = run_of([&](Thread& thread) {
    thread.op("aten::mm", 10 * ms, {"train.py(30): main"});
    thread.op("aten::zeros", step++ % 2 == 0 ? 1 * ms : 5 * ms, {"train.py(30): main"});
  });
  run.traces[0].clock_base_ns = 0;
  mark(run, 160, [](int) { return 20 * ms; });
  const Answer answer = advice_of(run);
  CHECK(std::get<std::int64_t>(answer.scalar("step_ns")->value) == doctest::Approx(20 * ms).epsilon(0.01));
  const Finding* found = find(answer, "allocation_in_steps");
  REQUIRE(found != nullptr);
  REQUIRE(found->evidence[0].text == "Of the steps");
  CHECK(std::get<double>(found->evidence[0].value) > 0.3);  // of the recorded ones 0.23
}

TEST_CASE("advice: steps that wait for more pages than recorded ones are longer where memory is taken") {
  // Of a recorded step of 12 ms 2 are zeros; others take 14 ms.
  const auto zeros = [](std::string_view recorded, std::string_view usual, bool takes = true) {
    Run run = run_of([takes](Thread& thread) {
      thread.op("aten::mm", 10 * ms, {"train.py(30): main"});
      if (takes) thread.taken(32 << 20, 0x1000);
      thread.op("aten::zeros", 2 * ms, {"train.py(30): main"});
      if (takes) thread.freed(32 << 20, 0x1000);
    });
    run.traces[0].clock_base_ns = 0;
    mark(run, 160, [](int) { return 14 * ms; });
    run.traces[0].metadata.push_back({std::string(kPageFaults), std::string(recorded)});
    run.history[0].metadata.push_back({std::string(kPageFaults), std::string(usual)});
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "allocation_in_steps");
    REQUIRE(found != nullptr);
    return std::get<double>(found->evidence[0].value);
  };
  CHECK(zeros("[4, 0]", "[160, 8192]") == doctest::Approx(4.0 / 14).epsilon(0.03));
  const double apart = 2.0 / 12;
  CHECK(zeros("[4, 0]", "[160, 100]") == doctest::Approx(apart).epsilon(0.03));   // about as many
  CHECK(zeros("[4, 8192]", "[160, 0]") == doctest::Approx(apart).epsilon(0.03));  // fewer, and they take longer
  CHECK(zeros("[4, 0]", "[160, 8192]", false) == doctest::Approx(apart).epsilon(0.03));
  for (const char* broken : {"", "[4]", "[0, 8192]", "[-4, 8192]", "{}", "[4, \"x\"]"}) {
    CAPTURE(broken);
    CHECK(zeros(broken, "[160, 8192]") == doctest::Approx(apart).epsilon(0.03));
  }
}

TEST_CASE("advice: code in one of the recorded steps is a pause where hardly a marked step is as long") {
  const auto job = [](int each) {
    int step = 0;
    Run run = run_of([step](Thread& thread) mutable {
      thread.op("aten::mm", 10 * ms, {"train.py(30): main"});
      if (step++ % 4 == 0) thread.code(4 * ms, {"train.py(30): main"});
      thread.op("aten::add", 1 * ms, {"train.py(30): main"});
    });
    run.traces[0].clock_base_ns = 0;
    mark(run, 160, [each](int i) { return i % each == 0 ? 15 * ms : 11 * ms; });
    return advice_of(run);
  };
  CHECK(find(job(80), "python_in_step") == nullptr);
  CHECK(find(job(4), "python_in_step") != nullptr);
}

TEST_CASE("advice: what grows with each step is worth what it costs the job, however little it is when recorded") {
  const auto job = [](std::int64_t more, std::int64_t mean_ns = 10 * us) {
    std::int64_t elements = 1000;
    Run run = run_of([=](Thread& thread) mutable {
      static const std::string_view kNames[] = {"[[1000]]", "[[1064]]", "[[1128]]", "[[1192]]", "[[1256]]"};
      thread.op("aten::mm", 10 * ms, {"train.py(30): main"});
      const auto turn = static_cast<std::size_t>((elements - 1000) / 64);
      thread.op("aten::mean", mean_ns, {"train.py(30): main"}, {.dims = more > 0 ? kNames[turn] : kNames[0]});
      elements += 64;
    });
    run.traces[0].clock_base_ns = 0;
    return run;
  };
  Run grows = job(64);
  mark(grows, 200, [](int i) { return (10 * ms) + i * (ms / 10); });
  const Answer answer = advice_of(grows);
  const Finding* found = find(answer, "memory_growth");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->where.op == "aten::mean");
  // Of 21 ms the 10 that do not grow are left, and no less: early steps were no faster.
  CHECK(found->gain->speedup_high == doctest::Approx(21.0 / 10).epsilon(0.01));
  CHECK(found->gain->speedup_low == doctest::Approx(21.0 / 11.5).epsilon(0.05));
  // What grows until it is as much as the program keeps is worth as much.
  Run level = job(64, ms);
  mark(level, 200, [](int i) { return i < 30 ? (10 * ms) + i * (11 * ms / 30) : 21 * ms; });
  const Answer levelled = advice_of(level);
  REQUIRE(find(levelled, "memory_growth") != nullptr);
  REQUIRE(find(levelled, "memory_growth")->gain);
  // Of usual steps a millisecond grew to 11 or 12, and at least the 10 recorded beside it are left.
  CHECK(find(levelled, "memory_growth")->gain->how == "from the marks of all steps");
  CHECK(find(levelled, "memory_growth")->gain->speedup_low > 21.0 / 11.5);
  CHECK(find(levelled, "memory_growth")->gain->speedup_high < at_most(21.0 / 8.5));
  // Not where it was recorded when all was there: then it is worth what is recorded.
  Run late = job(64, ms);
  mark(late, 200, [](int i) { return i < 30 ? 10 * ms : 21 * ms; });
  for (Step& step : late.traces[0].steps) step.number += 300;
  const Answer recorded_late = advice_of(late);
  REQUIRE(find(recorded_late, "memory_growth") != nullptr);
  CHECK(find(recorded_late, "memory_growth")->gain->how != "from the marks of all steps");
  Run even = job(64);
  mark(even, 200, [](int) { return 10 * ms; });
  CHECK(find(advice_of(even), "memory_growth") == nullptr);
  Run unknown = job(0);
  mark(unknown, 200, [](int i) { return (10 * ms) + i * (ms / 10); });
  CHECK(find(advice_of(unknown), "memory_growth") == nullptr);
}

TEST_CASE("advice: a profiler of the program's own that records most of its steps is left on") {
  const auto job = [](std::string_view steps) {
    Run run = plain_job();
    mark(run, 160, [](int) { return 10 * ms; });
    std::vector<Metadata>& said = run.history[0].metadata;
    said.push_back({std::string(kOwnProfiledSteps), std::string(steps)});
    said.push_back({std::string(kOwnProfilerFile), "train.py"});
    said.push_back({std::string(kOwnProfilerLine), "32"});
    return advice_of(run);
  };
  const Answer answer = job("150");
  const Finding* found = find(answer, "debug_mode");
  REQUIRE(found != nullptr);
  CHECK(found->where.file == "train.py");
  CHECK(found->where.line == 32);
  CHECK_FALSE(found->gain);
  for (const char* few : {"3", "25", "", "many"}) CHECK(find(job(few), "debug_mode") == nullptr);
}

}  // namespace
}  // namespace stepscope::diagnose
