// What a rank does itself in all marked steps, on marks made by hand.
#include "model/own_time.h"

#include <doctest/doctest.h>

#include <optional>

#include "model/trace_fixture.h"

namespace stepscope {
namespace {

constexpr std::int64_t kMs = 1'000'000;

struct Marks {
  int steps = 60;
  std::int64_t forward_ns = 4 * kMs, other_ns = kMs;  // backward passes take 5 ms
  std::int64_t rare_ns = 0;                           // in each tenth step besides, outside of both passes
  std::int64_t warm_up_ns = 0;                        // in the first step
  int forwards = 1'000;                               // steps whose forward pass is marked

  Trace make(std::int64_t rank) const {
    TraceFixture f;
    f.trace.rank.rank = rank;
    const TrackId lane = f.host("1");
    std::int64_t at_ns = 1'000 * kMs;
    const auto mark = [&](std::string_view name, Phase phase, std::int64_t ns) {
      f.slice(lane, "user_annotation", name, at_ns, ns);
      f.trace.slices.phase.push_back(static_cast<std::uint8_t>(phase));
      at_ns += ns;
    };
    for (int i = 0; i < steps; i++) {
      const std::int64_t start_ns = at_ns;
      if (i < forwards) mark("forward", Phase::forward, forward_ns);
      mark("backward", Phase::backward, 5 * kMs);
      at_ns += other_ns + (i % 10 == 9 ? rare_ns : 0) + (i == 0 ? warm_up_ns : 0);
      f.trace.steps.push_back({.name = "step", .number = i, .start_ns = start_ns, .end_ns = at_ns});
    }
    return std::move(f.trace);
  }
};

// A recorded step, in which the ranks meet at `at_ns`; its backward pass is from 4 to 9 ms.
Trace recorded(std::int64_t rank, std::int64_t at_ns) {
  TraceFixture f;
  f.trace.rank.rank = rank;
  const TrackId cpu = f.host("1");
  f.op(cpu, "aten::mm", 0, 4 * kMs);
  f.annotation(cpu, "backward", 4 * kMs, 5 * kMs);
  f.op(cpu, "c10d::allreduce_", at_ns, kMs / 10);
  f.op(cpu, "aten::add", 9 * kMs, kMs / 2);
  return std::move(f.trace);
}

Run two_ranks(const Marks& first, const Marks& second, std::int64_t meet_ns = 8 * kMs) {
  Run run;
  for (const std::int64_t rank : {0, 1}) {
    run.traces.push_back(recorded(rank, meet_ns));
    run.history.push_back((rank == 0 ? first : second).make(rank));
  }
  return run;
}

TEST_CASE("own time: what a rank does more than the others in all marked steps") {
  const Run run = two_ranks({}, {.forward_ns = 6 * kMs, .other_ns = 2 * kMs});
  const auto own = own_time(run, 1);
  REQUIRE(own);
  CHECK(own->forward_ns == 6 * kMs);
  CHECK(own->outside_backward_ns == 8 * kMs);
  CHECK(usual_excess_ns(run, 1) == 3 * kMs);
  CHECK(usual_excess_ns(run, 0) == -3 * kMs);
  CHECK(usual_forward_ratio(run, 1).value_or(0) == doctest::Approx(1.5));
  const Run even = two_ranks({}, {});
  CHECK(usual_excess_ns(even, 1) == 0);
  CHECK(usual_forward_ratio(even, 1).value_or(0) == doctest::Approx(1));
  CHECK_FALSE(own_time(run, 2));  // of which nothing is marked
}

TEST_CASE("own time: what comes every few steps counts, and a job that warms up does not") {
  const Run run = two_ranks({}, {.rare_ns = 20 * kMs});
  // Steps 6 to 59, in 6 of which it is there.
  CHECK(usual_excess_ns(run, 1) == 6 * 20 * kMs / 54);
  CHECK(usual_forward_ratio(run, 1).value_or(0) == doctest::Approx(1));
  CHECK(usual_excess_ns(two_ranks({}, {.warm_up_ns = 5'000 * kMs}), 1) == 0);
}

TEST_CASE("own time: where ranks meet outside of their backward passes too, it is not their own") {
  const Marks late{.forward_ns = 6 * kMs};
  CHECK(own_time(two_ranks({}, late), 1));
  CHECK(own_time(two_ranks({}, late, 4 * kMs), 1));  // as the pass begins
  for (const std::int64_t outside : {2 * kMs, 9 * kMs, 9 * kMs + kMs / 5}) {
    const Run run = two_ranks({}, late, outside);
    CHECK_FALSE(own_time(run, 1));
    CHECK_FALSE(usual_excess_ns(run, 1));
    CHECK_FALSE(usual_forward_ratio(run, 1));
  }
}

TEST_CASE("own time: of few marked steps, or few forward passes, nothing is said") {
  CHECK(own_time(two_ranks({}, {.steps = 40}), 1));
  CHECK_FALSE(own_time(two_ranks({}, {.steps = 39}), 1));
  const Run few = two_ranks({.steps = 39}, {});
  CHECK(own_time(few, 1));
  CHECK_FALSE(usual_excess_ns(few, 1));  // nobody to compare it with
  CHECK_FALSE(usual_forward_ratio(few, 1));
  CHECK(own_time(two_ranks({}, {.forwards = 26}), 1));  // 20 of these behind the first tenth
  CHECK_FALSE(own_time(two_ranks({}, {.forwards = 25}), 1));
  Run none = two_ranks({}, {});
  none.history.pop_back();
  CHECK_FALSE(own_time(none, 1));
}

}  // namespace
}  // namespace stepscope
