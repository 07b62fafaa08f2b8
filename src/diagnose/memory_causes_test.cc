// Causes that lie in the memory of the host: work that grows, memory that goes back to the system and comes anew.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>

#include "diagnose/steps_fixture.h"
#include "model/settings.h"

namespace stepscope::diagnose {
namespace {

TEST_CASE("advice: operators that get more with each step grow, those of changing batches do not") {
  const auto job = [](std::vector<int> rows) {
    std::size_t step = 0;
    return run_of(
        [&, step](Thread& thread) mutable {
          const std::string dims = "[[" + std::to_string(rows[step++ % rows.size()]) + ", 32]]";
          thread.op("aten::mean", 5 * ms, {}, {.dims = dims});
          thread.op("aten::mm", 5 * ms, {}, {.dims = kTwoSquares});
        },
        false);
  };
  CHECK(find(advice_of(job({1000, 2000, 3000, 4000})), "memory_growth") != nullptr);
  CHECK(find(advice_of(job({1000, 3000, 2000, 4000})), "memory_growth") == nullptr);
}

TEST_CASE("advice: large tensors that were let go go back to the system with a smaller one later in the step") {
  const auto job = [](std::int64_t later_bytes) {
    Run run = run_of([&](Thread& thread) {
      thread.op("aten::full", 4 * ms, {}, {.dims = "[[]]"});
      thread.freed(32 << 20);
      thread.op("aten::mm", 4 * ms, {}, {.dims = kTwoSquares});
      thread.freed(later_bytes);
      thread.code(2 * ms);
      thread.op("aten::add", 2 * ms, {}, {.dims = kSquare});
    });
    const Answer answer = advice_of(run);
    const Finding* found = find(answer, "allocation_in_steps");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    return *found->gain;
  };
  // 32 MiB take 3.4 ms at 10 bytes a nanosecond: all of the 2 ms, and 0.84 ms at 40.
  CHECK(fast_end(job(100 << 10)) == doctest::Approx(at_most(12.0 / 6)).epsilon(0.01));
  CHECK(job(100 << 10).speedup_low == doctest::Approx(12.0 / (12 - 2.6 - 0.84)).epsilon(0.01));
  CHECK(fast_end(job(10 << 10)) == doctest::Approx(at_most(12.0 / 8)).epsilon(0.01));
}

TEST_CASE("advice: memory that comes anew from the system in each step costs its pages") {
  struct Job {
    std::string_view own = "[4, 4096]", others = "", around = "", page_ns = "500";
    std::int64_t taken = 16 << 20, freed = 16 << 20;
  };
  const auto advice = [](const Job& job) {
    Run run = run_of([&](Thread& thread) {
      thread.taken(job.taken, 1);
      thread.op("aten::relu", 8 * ms, {"net.py(3): forward"}, {.dims = kSquare});
      if (job.freed > 0) thread.freed(job.freed, 1);
      thread.op("aten::mm", 2 * ms, {}, {.dims = kTwoSquares});
    });
    run.traces[0].metadata.push_back({std::string(kPageFaults), std::string(job.own)});
    if (!job.page_ns.empty()) run.traces[0].metadata.push_back({"stepscope_page_ns", std::string(job.page_ns)});
    Trace history;
    if (!job.others.empty()) history.metadata.push_back({std::string(kPageFaults), std::string(job.others)});
    if (!job.around.empty()) history.metadata.push_back({std::string(kPageFaultsAround), std::string(job.around)});
    for (int i = 0; i < 40; i++) {
      const std::int64_t start_ns = 1'000 * ms + i * 10 * ms;
      history.steps.push_back({.name = "step", .number = i, .start_ns = start_ns, .end_ns = start_ns + 10 * ms});
    }
    if (!history.metadata.empty()) run.history.push_back(std::move(history));
    return advice_of(run);
  };
  // 16 MiB are 4096 pages, of 0.3 to 0.65 us each.
  const Job plain{}, others{.others = "[40, 4096]"},
      kept{.others = "[40, 0]", .around = R"({"before": [20, 4096], "after": [20, 0], "recording_ns": 1200000000})"};
  for (const Job& job : {plain, others, kept}) {
    const Answer answer = advice(job);
    const Finding* found = find(answer, "memory_returned");
    REQUIRE(found != nullptr);
    REQUIRE(found->gain);
    CHECK(found->where.op == "aten::relu");
    CHECK(found->gain->speedup_low == doctest::Approx(10 / (10 - 4096 * 0.0003)).epsilon(0.01));
    CHECK(fast_end(*found->gain) == doctest::Approx(at_most(10 / (10 - 4096 * 0.00065))).epsilon(0.01));
    CHECK(found->next.value_or("").find("MALLOC_TRIM_THRESHOLD_=1073741824 ") != std::string::npos);
  }
  // Half of what is taken comes anew: the rest is there, or the process grows by it.
  for (const Job& job : {Job{.own = "[4, 2048]"}, Job{.freed = 8 << 20}}) {
    const Answer half = advice(job);
    REQUIRE(find(half, "memory_returned") != nullptr);
    CHECK(fast_end(*find(half, "memory_returned")->gain) ==
          doctest::Approx(at_most(10 / (10 - 2048 * 0.00065))).epsilon(0.01));
  }
  // Of the steps that gains are of none has it: it is told all the same.
  const Answer recorded = advice({.others = "[40, 0]"});
  REQUIRE(find(recorded, "memory_returned") != nullptr);
  CHECK_FALSE(find(recorded, "memory_returned")->gain);
  CHECK(find(recorded, "memory_returned")->sentence.starts_with("Where it was recorded"));
  // But not where steps before the recording had few, or the heap was left as it had been, or where half of the memory
  // was there.
  CHECK(find(advice({.others = "[40, 0]",
                     .around = R"({"before": [20, 0], "after": [20, 0], "recording_ns": 1200000000})"}),
             "memory_returned") == nullptr);
  CHECK(
      find(advice({.others = "[40, 0]", .around = R"({"after": [40, 0], "recording_ns": 1200000000, "kept": false})"}),
           "memory_returned") == nullptr);
  CHECK(find(advice({.own = "[4, 2048]", .others = "[40, 0]"}), "memory_returned") == nullptr);
  // Not measured: a page takes from 0.25 to 1.5 us.
  const Answer unknown = advice({.page_ns = ""});
  REQUIRE(find(unknown, "memory_returned") != nullptr);
  CHECK(find(unknown, "memory_returned")->gain->speedup_low ==
        doctest::Approx(10 / (10 - 4096 * 0.00025)).epsilon(0.01));
  const Answer large = advice({.own = "[4, 1000000]", .taken = 4LL << 30, .freed = 4LL << 30});
  REQUIRE(find(large, "memory_returned") != nullptr);
  CHECK(find(large, "memory_returned")->next.value_or("").find("=8589934592 ") != std::string::npos);
  CHECK(find(advice({.own = "[4, 400]"}), "memory_returned") == nullptr);  // few
  CHECK(find(advice({.own = "[4, 0]", .others = "[40, 4096]"}), "memory_returned") ==
        nullptr);                                                                             // not what was recorded
  CHECK(find(advice({.freed = 0}), "memory_returned") == nullptr);                            // the process grows
  CHECK(find(advice({.taken = 64 << 10, .freed = 64 << 10}), "memory_returned") == nullptr);  // from what it has
}

}  // namespace
}  // namespace stepscope::diagnose
