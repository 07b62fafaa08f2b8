// Causes about the machine beside the steps, on jobs made by hand: threads, quotas, precision, and slower ranks.
#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/sampled.h"
#include "diagnose/steps_fixture.h"
#include "model/settings.h"

namespace stepscope::diagnose {
namespace {

constexpr std::string_view kMatrices = "[[512, 512], [512, 512]]";

Run products(std::string_view first_type) {
  return run_of([=](Thread& thread) {
    thread.op("aten::mm", 2 * ms, {"train.py(30): main"}, {.dims = kMatrices, .types = first_type});
    thread.op("aten::mm", 8 * ms, {"train.py(30): main"}, {.dims = kMatrices, .types = R"(["float", "float"])"});
  });
}

void note(Run& run, std::string_view name, std::string_view json) {
  run.traces[0].metadata.push_back({"stepscope_" + std::string(name), std::string(json)});
}

TEST_CASE("advice: float32 on a processor is a fault where the job means to use bfloat16, else an offer") {
  for (const bool mixed : {true, false}) {
    Run run = products(mixed ? R"(["c10::BFloat16", "c10::BFloat16"])" : R"(["float", "float"])");
    note(run, "cpu_bfloat16", "true");
    note(run, "bfloat16_speed_permille", "2000");
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "float32_matmul");
    REQUIRE(found != nullptr);
    CHECK(found->gain.has_value() == mixed);
    if (mixed) {
      CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10.0 / 6)).epsilon(0.02));
    } else {
      Gain offered;
      for (const Evidence& one : found->evidence) {
        const double* value = std::get_if<double>(&one.value);
        if (one.text == "Speedup if done, at least" && value != nullptr) offered.speedup_low = *value;
        if (one.text == "at most" && value != nullptr) offered.speedup_high = *value;
      }
      CHECK(fast_end(offered) == doctest::Approx(at_most(2)).epsilon(0.02));
    }
  }
}

// Marks of the steps as long as the telemetry, and a counter of it that grows by `per_ns`.
void sample(Run& run, std::string_view target, std::string_view name, double per_ns,
            std::optional<std::int64_t> rank = {}) {
  const std::int64_t base_ns = 1'000 * ms;
  if (run.history.empty()) {
    Trace history;
    for (int i = 0; i < 20; i++) {
      const std::int64_t start_ns = base_ns + i * 10 * ms;
      history.steps.push_back({.name = "step", .number = i, .start_ns = start_ns, .end_ns = start_ns + 10 * ms});
    }
    run.history.push_back(std::move(history));
    run.telemetry.emplace_back().sampled.push_back({.host = "a", .name = "rss", .target = "rank 0", .rank = 0});
  }
  Trace& telemetry = run.telemetry.front();
  const auto add = [&](std::uint32_t series, std::int64_t t_ns, double value) {
    telemetry.samples.series.push_back(series);
    telemetry.samples.time_ns.push_back(t_ns);
    telemetry.samples.value.push_back(value);
    telemetry.samples.rate.push_back(NAN);
  };
  if (telemetry.samples.size() == 0) add(0, base_ns, 1);
  const auto series = static_cast<std::uint32_t>(telemetry.sampled.size());
  telemetry.sampled.push_back(
      {.host = "a", .name = std::string(name), .target = std::string(target), .is_counter = true, .rank = rank});
  for (const std::int64_t at : {std::int64_t{0}, 100 * ms, 200 * ms}) {
    add(series, base_ns + at, per_ns * static_cast<double>(at));
  }
}

// A gauge of it that stays.
void sample_level(Run& run, std::string_view target, std::string_view name, double level) {
  sample(run, target, name, 0);
  Trace& telemetry = run.telemetry.front();
  telemetry.sampled.back().is_counter = false;
  for (std::size_t back = 1; back <= 3; back++) telemetry.samples.value[telemetry.samples.size() - back] = level;
}

void sample_of_rank(Run& run, std::string_view name, double per_ns) { sample(run, "rank 0", name, per_ns, 0); }

TEST_CASE("advice: what the quota of a cgroup stops") {
  Run run = products(R"(["float", "float"])");
  sample(run, "cgroup /job", "cpu_throttled_time", 0.5);
  CHECK(rate_on_machine(run, 0, "cpu_throttled_time").value_or(0) == doctest::Approx(0.5));
  CHECK_FALSE(rate_on_machine(run, 1, "cpu_throttled_time"));
  const Answer answer = advice_of(run);
  const Finding* found = find(answer, "cpu_throttled");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(2)).epsilon(0.02));
  Run free = products(R"(["float", "float"])");
  sample(free, "cgroup /job", "cpu_throttled_time", 0.001);
  CHECK(find(advice_of(free), "cpu_throttled") == nullptr);
}

TEST_CASE("advice: threads that are left out are worth what the cores give here") {
  Run run = products(R"(["float", "float"])");
  note(run, "torch_threads", "1");
  note(run, "cores", "2");
  sample(run, "host", "cpu_idle", 1);
  const Answer both = advice_of(run);
  REQUIRE(find(both, "too_few_threads") != nullptr);
  CHECK(fast_end(*find(both, "too_few_threads")->gain) == doctest::Approx(at_most(2)).epsilon(0.02));
  note(run, "cores_speed_permille", "1200");
  const Answer halves = advice_of(run);
  REQUIRE(find(halves, "too_few_threads") != nullptr);
  CHECK(fast_end(*find(halves, "too_few_threads")->gain) == doctest::Approx(at_most(1.2)).epsilon(0.02));
}

TEST_CASE("advice: ranks that a job spawned itself share the cores of their machine") {
  const auto is_told = [](std::string_view machine, double online = 2, std::int64_t world = 2, bool launched = false) {
    Run run = products(R"(["float", "float"])");
    note(run, "torch_threads", "1");
    note(run, "cores", "2");
    if (launched) note(run, "local_ranks", "1");
    sample(run, "host", "cpu_idle", 1);
    sample_level(run, "host", "online_cores", online);
    run.traces.front().metadata.push_back({"host_name", "\"node-a\""});
    Run other = products(R"(["float", "float"])");
    run.traces.push_back(std::move(other.traces.front()));
    run.traces.back().rank.rank = 1;
    for (Trace& trace : run.traces) trace.rank.world_size = world;
    run.traces.back().metadata.push_back({"host_name", std::string(machine)});
    return find(advice_of(run), "too_few_threads") != nullptr;
  };
  CHECK(is_told("\"node-b\""));
  CHECK(is_told("\"node-a\"", 4));           // each has cores of its own
  CHECK(is_told("\"node-a\"", 2, 0));        // files of one machine, opened together
  CHECK(is_told("\"node-a\"", 2, 2, true));  // the launcher knows
  CHECK_FALSE(is_told("\"node-a\""));        // one waits for the other meanwhile
}

TEST_CASE("advice: threads without cores cost what calling them all takes here, and products more") {
  const auto gain = [](std::string_view first_type) {
    Run run = products(first_type);
    note(run, "torch_threads", "16");
    note(run, "cores", "2");
    note(run, "crowd_call_ns", "1000000");
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "too_many_threads");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return *found->gain;
  };
  const Gain alone = gain(R"(["double", "double"])");  // nothing to compare either with
  CHECK(alone.speedup_low == doctest::Approx(10.0 / 8).epsilon(0.02));
  CHECK(fast_end(alone) == doctest::Approx(at_most(10.0 / 6.4)).epsilon(0.02));  // of 2 ms a fifth is its own
  // As many FLOP took 2 ms, so that they may again.
  const Gain same = gain(R"(["float", "float"])");
  CHECK(same.speedup_low == doctest::Approx(10.0 / 8).epsilon(0.02));
  CHECK(fast_end(same) == doctest::Approx(at_most(10.0 / 2.4)).epsilon(0.02));
}

TEST_CASE("advice: a worker of the loader beside the steps is worth what a second core gives here") {
  const auto job = [](std::string_view speed) {
    Run run = run_of([](Thread& thread) {
      thread.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 4 * ms);
      thread.op("aten::mm", 6 * ms, {"train.py(30): main"});
    });
    note(run, "torch_threads", "1");
    note(run, "cores", "2");
    if (!speed.empty()) note(run, "cores_speed_permille", speed);
    sample(run, "host", "cpu_idle", 1);
    return advice_of(run);
  };
  const auto gain = [](const Answer& answer) {
    const Finding* found = find(answer, "loader_in_main_process");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return found->gain->speedup_high;
  };
  CHECK(gain(job("")) == doctest::Approx(10.0 / 6).epsilon(0.02));
  CHECK(gain(job("2000")) == doctest::Approx(10.0 / 6).epsilon(0.02));
  const Answer halves = job("980");
  REQUIRE(find(halves, "loader_in_main_process") != nullptr);
  CHECK_FALSE(find(halves, "loader_in_main_process")->gain);  // two cores give no more than one
  CHECK(gain(job("1250")) == doctest::Approx(10.0 / (6 + 0.6 * 4)).epsilon(0.02));
}

TEST_CASE("advice: one idle core makes no batch sooner than the steps do now") {
  const auto low = [](double idle) {
    Run run = run_of([](Thread& thread) {
      thread.range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 6 * ms);
      thread.op("aten::mm", 4 * ms, {"train.py(30): main"});
    });
    sample(run, "host", "cpu_idle", idle);
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "loader_in_main_process");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    CHECK(fast_end(*found->gain) == doctest::Approx(10.0 / 4).epsilon(0.02));
    // Two keep up with steps of 4 ms, where there is a core for each.
    CHECK(found->next.value_or("").starts_with(idle < 2 ? "DataLoader(..., num_workers=1,"
                                                        : "DataLoader(..., num_workers=2,"));
    return found->gain->speedup_low;
  };
  CHECK(low(1) == doctest::Approx(10 / (1.3 * 6 + 0.05 * 6)).epsilon(0.02));
  CHECK(low(3) == doctest::Approx(10 / (4 + 0.05 * 6)).epsilon(0.02));
}

TEST_CASE("advice: workers that wait for disks are told by what devices read, and by how long work stood still") {
  const auto job = [](double stood_still) {
    Run run = run_of([](Thread& thread) {
      thread.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 6 * ms);
      thread.op("aten::mm", 4 * ms, {"train.py(30): main"});
    });
    sample(run, "cgroup /job", "io_pressure_some", stood_still);
    sample(run, "cgroup /job", "io_pressure_full", stood_still / 2);
    sample_of_rank(run, "read_from_devices", 1.0);  // 1 GB/s: 10 MB a step
    sample_of_rank(run, "read", 2.0);
    return advice_of(run);
  };
  const Answer disks = job(0.5);
  const Finding* found = find(disks, "page_cache_misses");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(2)).epsilon(0.02));
  CHECK(found->gain->speedup_low == doctest::Approx(1 / 0.75).epsilon(0.02));
  CHECK(find(disks, "loader_slow_workers") == nullptr);
  const Answer cached = job(0.001);
  CHECK(find(cached, "page_cache_misses") == nullptr);
  CHECK(find(cached, "loader_slow_workers") != nullptr);
}

TEST_CASE("advice: a worker that is waited for is busy meanwhile, whatever it says of the time before") {
  const auto job = [](double idle) {
    Run run = run_of([](Thread& thread) {
      thread.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 6 * ms);
      thread.op("aten::mm", 4 * ms, {"train.py(30): main"});
    });
    note(run, "loader_workers", "1");
    note(run, "loader_busy_permille", "300");
    note(run, "loader_cpu_permille", "1000");
    sample(run, "host", "cpu_idle", idle);
    return advice_of(run);
  };
  CHECK(find(job(0.5), "loader_slow_workers") != nullptr);
  CHECK(find(job(0.5), "loader_too_few_workers") == nullptr);
  CHECK(find(job(0.7), "loader_too_few_workers") != nullptr);
  // Of 10 ms it waits 6, and two and a half of them would keep up.
  CHECK(find(job(0.7), "loader_too_few_workers")->next == "Raise num_workers from 1 to 2");
  CHECK(find(job(4), "loader_too_few_workers")->next == "Raise num_workers from 1 to 3");
}

TEST_CASE("advice: workers that keep up take the cores of the steps where none is idle") {
  const auto job = [](double idle, double waits, std::string_view given = {}) {
    Run run = run_of([&](Thread& thread) {
      thread.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 4 * ms);
      thread.op("aten::mm", 6 * ms, {"train.py(30): main"}, {.dims = given});
    });
    note(run, "torch_threads", "2");
    note(run, "cores", "2");
    note(run, "loader_workers", "2");
    note(run, "loader_busy_permille", given.empty() ? "400" : "900");
    note(run, "loader_cpu_permille", "700");
    note(run, "batches_ready_permille", "950");
    sample(run, "host", "cpu_idle", idle);
    sample_of_rank(run, "main_thread_wait", waits);
    return advice_of(run);
  };
  const Answer answer = job(0.1, 0.3);
  const Finding* found = find(answer, "loader_slow_workers");
  REQUIRE(found != nullptr);
  CHECK(found->sentence.find("take the cores") != std::string::npos);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(10 / (6 * 0.5)).epsilon(0.02));  // half of the rest is waits
  CHECK(found->gain->speedup_low == doctest::Approx(10 / (6 * 0.75 + 0.4)).epsilon(0.02));
  // What is large enough for both threads loses what the workers take of both cores, 0.63 of each, at most.
  const Answer large = job(0.1, 0.3, "[[256, 256], [256, 256]]"), small = job(0.1, 0.3, "[[64, 64], [64, 64]]");
  const auto fastest = [](const Answer& of) { return fast_end(*find(of, "loader_slow_workers")->gain); };
  CHECK(fastest(large) == doctest::Approx(10 / (6 * 0.37)).epsilon(0.02));
  CHECK(fastest(small) == doctest::Approx(10 / (6 * 0.5)).epsilon(0.02));
  CHECK(find(job(0.1, 0.02), "loader_slow_workers") == nullptr);
  CHECK(find(job(1, 0.3), "loader_slow_workers") == nullptr);
}

TEST_CASE("advice: workers that were ahead while steps were recorded are waited for in all others") {
  const auto job = [](std::int64_t waits_ns, int every = 1, double idle = 1, std::string_view on_core = "100",
                      std::string_view batch_ns = {}) {
    Run run = run_of([](Thread& thread) {
      thread.range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1 * ms);
      thread.op("aten::mm", 9 * ms, {"train.py(30): main"});
    });
    run.traces[0].clock_base_ns = 0;
    TraceFixture marks;
    const TrackId lane = marks.host("1");
    for (int i = 0; i < 160; i++) {
      const std::int64_t at_ns = 1'000 * ms + i * (9 * ms + waits_ns);
      marks.annotation(lane, "dataloader", at_ns, i % every == 0 ? waits_ns : 0);
      marks.trace.slices.phase.push_back(static_cast<std::uint8_t>(Phase::dataloader));
      marks.trace.steps.push_back(
          {.name = "step", .number = i + 104, .start_ns = at_ns, .end_ns = at_ns + 9 * ms + waits_ns});
    }
    sample(run, "host", "cpu_idle", idle);
    run.history[0] = std::move(marks.trace);
    note(run, "loader_workers", "1");
    note(run, "loader_busy_permille", "400");
    note(run, "loader_cpu_permille", on_core);
    note(run, "batches_ready_permille", "950");
    if (!batch_ns.empty()) note(run, "loader_batch_ns", batch_ns);
    return advice_of(run);
  };
  const Answer answer = job(11 * ms);
  const Finding* found = find(answer, "loader_too_few_workers");
  REQUIRE(found != nullptr);
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_low == doctest::Approx(20 / 10.1).epsilon(0.03));
  CHECK(find(job(1 * ms), "loader_too_few_workers") == nullptr);
  // Only where a pass through the data begins.
  CHECK(find(job(40 * ms, 8), "loader_too_few_workers") == nullptr);
  // One that computes has a core to itself all the time, and another one would have nine tenths of one.
  const Answer busy = job(11 * ms, 1, 0.9, "1000");
  CHECK(find(busy, "loader_too_few_workers") == nullptr);
  CHECK(find(busy, "loader_slow_workers") != nullptr);
  // Its batches take longer than the rest of a step, or far less: then it is not the making that is waited for.
  CHECK(find(job(11 * ms, 1, 1, "100", "19000000"), "loader_too_few_workers") != nullptr);
  for (const std::string_view on_core : {"100", "1000"}) {
    const Answer ahead = job(5 * ms / 2, 1, 0.9, on_core);
    CHECK((find(ahead, "loader_slow_workers") != nullptr) != (find(ahead, "loader_too_few_workers") != nullptr));
    const Answer in_time = job(5 * ms / 2, 1, 0.9, on_core, "1400000");
    CHECK(find(in_time, "loader_too_few_workers") == nullptr);
    CHECK(find(in_time, "loader_slow_workers") == nullptr);
  }
  // Half of the steps are waited for all the same: they took so long while the job was recorded, and longer now.
  CHECK(find(job(11 * ms, 1, 1, "100", "1400000"), "loader_too_few_workers") != nullptr);
}

TEST_CASE("advice: batches that are ready and are handed over tensor by tensor") {
  const auto job = [](int tensors, std::string_view busy) {
    Run run = run_of([&](Thread& thread) {
      thread.begin_range();
      for (int i = 0; i < tensors; i++) {
        thread.code(40 * us);
        thread.op("aten::set_", 10 * us, {"train.py(30): main"});
      }
      thread.end_range("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
      thread.op("aten::mm", 6 * ms, {"train.py(30): main"});
    });
    note(run, "loader_workers", "2");
    note(run, "loader_busy_permille", busy);
    note(run, "loader_cpu_permille", "700");
    note(run, "batches_ready_permille", "950");
    sample(run, "host", "cpu_idle", 1);
    return advice_of(run);
  };
  const Answer pieces = job(100, "100");
  const Finding* found = find(pieces, "loader_hand_over");
  REQUIRE(found != nullptr);
  CHECK(evidence(*found, "Tensors in a batch") == 100);
  REQUIRE(found->gain);  // of 5 ms 2 % are left at best
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(11 / 6.1)).epsilon(0.03));
  CHECK(find(job(8, "100"), "loader_hand_over") == nullptr);
  CHECK(find(job(100, "990"), "loader_hand_over") == nullptr);  // the workers are what is waited for
}

TEST_CASE("advice: memory of another node") {
  const auto job = [](double remote) {
    Run run = products(R"(["float", "float"])");
    for (const std::string_view domain : {"L3 0", "L3 1"}) {
      sample(run, domain, "memory_traffic", 20);
      sample(run, domain, "memory_traffic_remote", remote);
    }
    return advice_of(run);
  };
  const Answer far = job(10);
  const Finding* found = find(far, "remote_memory");
  REQUIRE(found != nullptr);
  CHECK(found->confidence == "medium");
  REQUIRE(found->gain);
  CHECK(found->gain->speedup_high == doctest::Approx(1 / 0.75).epsilon(0.02));
  CHECK(find(job(1), "remote_memory") == nullptr);
}

// Two ranks with the same operators on as much data, whose all-reduce waits for the later one.
Run two_ranks(std::int64_t second_mm_ns) {
  Run run;
  for (int rank = 0; rank < 2; rank++) {
    Thread thread;
    for (int i = 0; i < 4; i++) {
      thread.begin_step();
      thread.op("aten::mm", rank == 1 ? second_mm_ns : 10 * ms, {}, {.dims = kMatrices});
      thread.op("aten::add", 1 * ms, {}, {.dims = "[[512, 512], [512, 512]]"});
      thread.end_step();
    }
    thread.f.trace.rank.rank = rank;
    run.traces.push_back(std::move(thread.f.trace));
    REQUIRE(derive::derive(run.traces.back(), {}));
  }
  derive::derive_run(run, 1);
  return run;
}

TEST_CASE("advice: a rank whose operators take longer on as much data is on a slower machine") {
  const Answer answer = advice_of(two_ranks(15 * ms));
  const Finding* found = find(answer, "straggler_hardware");
  REQUIRE(found != nullptr);
  CHECK(found->where.rank == 1);
  REQUIRE(found->gain);
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(16.0 / 11)).epsilon(0.02));
  CHECK(find(advice_of(two_ranks(10 * ms)), "straggler_hardware") == nullptr);
}

// What a rank does beside its 10 ms in one of five steps, or in all of them.
struct Extra {
  std::int64_t function_ns = 0;  // in a function of its own
  std::int64_t code_ns = 0;      // in the loop, between operators
  std::int64_t longer_ns = 0;    // its product takes as much longer
  int step = 2;                  // -1: all
};

// Two ranks, recorded with frames, whose products are as large.
Answer advice_of_ranks(const Extra& first, const Extra& second) {
  Run run;
  for (const std::int64_t rank : {0, 1}) {
    const Extra& more = rank == 0 ? first : second;
    const std::vector<std::string> loop{"train.py(30): main"},
        own{"train.py(30): main", "train.py(50): report", "<built-in method sort of type object at 0x7f>"};
    Thread thread(true);
    thread.op("aten::empty", 10 * us, loop);
    for (int i = 0; i < 5; i++) {
      const bool here = more.step < 0 || more.step == i;
      thread.begin_step();
      thread.op("aten::mm", 9 * ms + (here ? more.longer_ns : 0), loop, {.dims = kMatrices});
      if (here && more.function_ns > 0) thread.op("aten::sort", more.function_ns, own, {.dims = "[[512, 512]]"});
      if (here && more.code_ns > 0) thread.code(more.code_ns, loop);
      thread.op("aten::add", 1 * ms, loop, {.dims = kMatrices});
      thread.end_step();
    }
    thread.op("aten::empty", 10 * us, loop);
    thread.f.trace.rank.rank = rank;
    thread.f.trace.code = {{"train.py", 30, "report", 44}, {"train.py", 50, "sort", 52}};
    run.traces.push_back(std::move(thread.f.trace));
    REQUIRE(derive::derive(run.traces.back(), {}));
  }
  derive::derive_run(run, 1);
  return advice_of(run);
}

TEST_CASE("advice: what one rank alone does every so often makes it late, though in few of the steps") {
  const Answer answer = advice_of_ranks({}, {.function_ns = 20 * ms});
  const Finding* found = find(answer, "straggler_host");
  REQUIRE(found != nullptr);
  CHECK(found->where.rank == 1);
  CHECK(found->where.file == "train.py");
  CHECK(found->where.line == 52);
  REQUIRE(found->gain);
  // It is in one step of five: of that two thirds go, and four tenths of these off the other third and no other step.
  CHECK(fast_end(*found->gain) == doctest::Approx(1.479).epsilon(0.02));
  CHECK(find(answer, "straggler_hardware") == nullptr);
  // It takes little; or the other rank takes long in another step, by chance or for the same.
  CHECK(find(advice_of_ranks({}, {.function_ns = 4 * ms}), "straggler_host") == nullptr);
  for (const Extra& other : {Extra{.longer_ns = 20 * ms, .step = 3}, Extra{.function_ns = 20 * ms, .step = 3}}) {
    CHECK(find(advice_of_ranks(other, {.function_ns = 60 * ms}), "straggler_host") == nullptr);
  }
  CHECK(find(advice_of_ranks({}, {.function_ns = 60 * ms}), "straggler_host") != nullptr);
}

TEST_CASE("advice: a rank that stands still in one step alone is not to blame, in all of them it is") {
  const Answer pause = advice_of_ranks({}, {.code_ns = 20 * ms});
  CHECK(find(pause, "straggler_host") == nullptr);
  CHECK(find(pause, "straggler_hardware") == nullptr);
  CHECK(find(advice_of_ranks({}, {.code_ns = 20 * ms, .step = -1}), "straggler_host") != nullptr);
  const Answer slow = advice_of_ranks({}, {.longer_ns = 20 * ms});
  CHECK(find(slow, "straggler_host") == nullptr);
  CHECK(find(slow, "straggler_hardware") == nullptr);
  CHECK(find(advice_of_ranks({}, {.longer_ns = 20 * ms, .step = -1}), "straggler_hardware") != nullptr);
}

// Marks of 60 steps of rank 0 and of rank 1, whose forward passes take so long, far from the recording.
void mark_passes(Run& run, std::int64_t first_ns, std::int64_t second_ns) {
  for (const std::int64_t rank : {0, 1}) {
    TraceFixture f;
    f.trace.rank.rank = rank;
    const TrackId lane = f.host("1");
    for (int i = 0; i < 60; i++) {
      const std::int64_t start_ns = 1'000'000 * ms + i * 20 * ms;
      f.slice(lane, "user_annotation", "forward", start_ns, rank == 0 ? first_ns : second_ns);
      f.trace.slices.phase.push_back(static_cast<std::uint8_t>(Phase::forward));
      f.trace.steps.push_back({.name = "step", .number = i + 104, .start_ns = start_ns, .end_ns = start_ns + 20 * ms});
    }
    run.history.push_back(std::move(f.trace));
  }
}

TEST_CASE("advice: a machine is slow for the whole job, and not in the recorded steps alone") {
  const auto job = [](std::int64_t forward_ns) {
    Run run = two_ranks(15 * ms);
    for (Trace& trace : run.traces) trace.clock_base_ns = 0;
    mark_passes(run, 10 * ms, forward_ns);
    return advice_of(run);
  };
  CHECK(find(job(15 * ms), "straggler_hardware") != nullptr);
  CHECK(find(job(13 * ms), "straggler_hardware") != nullptr);
  CHECK(find(job(11 * ms), "straggler_hardware") == nullptr);
  CHECK(find(job(10 * ms), "straggler_hardware") == nullptr);
}

TEST_CASE("advice: what the thread of the steps waited for a core is no time of the program") {
  int step = 0;
  Run run = run_of(
      [&](Thread& thread) {
        thread.op("aten::mm", 6 * ms, {}, {.dims = kMatrices});
        thread.code(step++ == 1 ? 8 * ms : 3 * ms);
        thread.op("aten::relu", 1 * ms);
      },
      false);
  const auto step_ns = [&] { return std::get<std::int64_t>(advice_of(run).scalar("step_ns")->value); };
  CHECK(step_ns() == 10 * ms + 5 * ms / 4);
  auto& said = run.traces[0].metadata;
  said.push_back({std::string(kCoreWaits), "[[2, 4000000]]"});
  CHECK(step_ns() == 10 * ms + 1 * ms / 4);
  said.back().json = "[[2, 50000000]]";  // no piece of that step is so much longer than in the others
  CHECK(step_ns() == 10 * ms);
  said.back().json = "[[1, 4000000], [99, 5000000]]";  // nor is any of the first
  CHECK(step_ns() == 10 * ms + 5 * ms / 4);
  for (const char* broken : {"[[2, -4000000]]", "[[2]]", "[2, 4000000]", "[[2, \"x\"]]", "[[2, 40000", "{}", ""}) {
    said.back().json = broken;
    CHECK_MESSAGE(step_ns() == 10 * ms + 5 * ms / 4, broken);
  }
  said.back().json = "[]";
  said.push_back({std::string(kCoreWaits), "[[2, 5000000]]"});  // of the next part of the recording
  CHECK(step_ns() == 10 * ms);
}

TEST_CASE("advice: code seen once may be a pause where the thread often has no core") {
  int step = 0;
  Run run = run_of([&](Thread& thread) {
    thread.op("aten::mm", 6 * ms, {}, {.dims = kMatrices});
    if (const int now = step++; now == 1 || now == 4) thread.code(20 * ms, {"train.py(1): <module>"});
    thread.op("aten::relu", 1 * ms);
  });
  const Answer quiet = advice_of(run);
  const Finding* found = find(quiet, "python_in_step");
  REQUIRE(found != nullptr);
  CHECK(found->confidence == "high");
  CHECK(found->gain->speedup_low == doctest::Approx(48.0 / 32).epsilon(0.01));
  sample_of_rank(run, "main_thread_wait", 0.5);
  const Answer busy = advice_of(run);
  found = find(busy, "python_in_step");
  REQUIRE(found != nullptr);
  CHECK(found->confidence == "medium");
  CHECK(found->confidence_reason.find("had no core for 50 % of its time") != std::string::npos);
  CHECK(found->gain->speedup_low == doctest::Approx(1));
}

TEST_CASE("advice: a thread of Python that computes takes turns with the code between operators") {
  const auto job = [](std::string_view note) {
    Run run = run_of([](Thread& thread) {
      for (int i = 0; i < 10; i++) thread.op("aten::mm", 500 * us), thread.code(500 * us, {"train.py(30): main"});
    });
    run.traces[0].metadata.push_back({"stepscope_threads", std::string(note)});
    return advice_of(run);
  };
  const Answer answer =
      job(R"({"recorded_ns": 100, "stood_ns": 40, "threads": [["fill", 60, "train.py", 10, "fill", 12]]})");
  const Finding* found = find(answer, "interpreter_lock");
  REQUIRE(found != nullptr);
  CHECK(found->where.line == 12);
  CHECK(found->confidence == "medium");
  REQUIRE(found->gain);
  // Of 10 ms 5 are code, 4.8 of it longer than usual, 4 of which the thread stood still.
  CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10.0 / 6)).epsilon(0.02));
  for (const char* note : {R"({"recorded_ns": 100, "stood_ns": 1, "threads": [["fill", 60, "", 0, "", 0]]})",
                           R"({"recorded_ns": 0, "stood_ns": 40, "threads": [["fill", 60, "", 0, "", 0]]})",
                           R"({"recorded_ns": 100, "stood_ns": 40, "threads": [["fill", -1]]})", "[]", "{"}) {
    CAPTURE(note);
    CHECK(find(job(note), "interpreter_lock") == nullptr);
  }
}

}  // namespace
}  // namespace stepscope::diagnose
