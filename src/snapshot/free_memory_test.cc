// Free memory, why memory ran out, growth, and what stands out, by hand.
#include "snapshot/free_memory.h"

#include <doctest/doctest.h>

#include "snapshot/compare.h"
#include "snapshot/growth.h"
#include "snapshot/history.h"
#include "snapshot/out_of_memory.h"
#include "snapshot/snapshot_fixture.h"

namespace stepscope::snapshot {
namespace {

using snapshot_fixture::Builder;
using snapshot_fixture::kMiB;

constexpr std::uint64_t kBase = 0x10000000;

std::uint64_t at(std::int64_t mib) { return kBase + static_cast<std::uint64_t>(mib * kMiB); }

}  // namespace

TEST_CASE("free memory: runs, what keeps them apart, and the cheapest way to make room") {
  Builder b;
  // 0..10 free, 10..12 live, 12..20 free, 20..50 live (two blocks), 50..58 free, 58..60 live
  b.segment(kBase, 60 * kMiB, {{at(10), 2 * kMiB}, {at(20), 25 * kMiB}, {at(45), 5 * kMiB}, {at(58), 2 * kMiB}});
  b.segment(at(100), 20 * kMiB, {});
  const AllocatorHistory h = history_of(b.done());
  const State state = state_at(h, h.devices[0], 0);
  const FreeMemory all = free_memory(h, state, std::nullopt);
  CHECK(all.reserved == 80 * kMiB);
  CHECK(all.taken == 34 * kMiB);
  CHECK(all.free == 46 * kMiB);
  CHECK(all.runs == 4);
  CHECK(all.largest_run == 20 * kMiB);
  REQUIRE(all.blockers.size() == 2);
  CHECK(all.blockers[0].free_bytes == 18 * kMiB);
  CHECK(all.blockers[0].live_bytes == 2 * kMiB);
  CHECK(all.blockers[0].blocks == 1);
  CHECK(h.allocations.address[all.blockers[0].largest] == at(10));
  CHECK(all.blockers[1].blocks == 2);
  const FreeMemory wanted = free_memory(h, state, Wanted{.bytes = 24 * kMiB, .stream = 0, .pool = 0});
  REQUIRE(wanted.cheapest);
  // The free runs are too short even together with the small blocks between them, 20 MiB and 15: 20..45 must go.
  CHECK(wanted.cheapest->live_bytes == 25 * kMiB);
  CHECK(wanted.cheapest->blocks == 1);
  const FreeMemory small = free_memory(h, state, Wanted{.bytes = 512});
  CHECK(small.usable == 0);  // both segments are of large blocks
  const FreeMemory elsewhere = free_memory(h, state, Wanted{.bytes = 4 * kMiB, .stream = 3, .pool = 0});
  CHECK(elsewhere.usable == 0);
  CHECK(elsewhere.free == 46 * kMiB);
}

TEST_CASE("out of memory: the causes") {
  const auto cause = [](std::int64_t wanted, std::uint64_t device_free, std::optional<std::int64_t> device) {
    Builder b;
    b.event(AllocatorAction::oom, device_free, wanted);
    b.segment(kBase, 20 * kMiB, {{at(8), 2 * kMiB}});  // free: 8 and 10 MiB
    const AllocatorHistory h = history_of(b.done());
    return out_of_memory(b.snapshot, h, h.devices[0], 0, device).cause;
  };
  CHECK(cause(18 * kMiB, 0, std::nullopt) == OomCause::fragmented);
  CHECK(cause(40 * kMiB, 30 * kMiB, std::nullopt) == OomCause::fragmented);
  CHECK(cause(16 * kMiB, 132 * 1024 * kMiB, std::nullopt) == OomCause::limited);  // a fraction of the device is set
  CHECK(cause(16 * kMiB, 200 * kMiB, std::nullopt) == OomCause::fragmented);
  CHECK(cause(20 * kMiB, 1 * kMiB, std::nullopt) == OomCause::full);
  CHECK(cause(40 * kMiB, 1 * kMiB, std::int64_t{8} << 30) == OomCause::outside);
  CHECK(cause(40 * kMiB, 1 * kMiB, std::nullopt) == OomCause::beyond);  // of 21 MiB that are known
  CHECK(cause(40 * kMiB, 1 * kMiB, 30 * kMiB) == OomCause::beyond);
  CHECK(cause(40 * kMiB, 1 * kMiB, 60 * kMiB) == OomCause::full);
  CHECK(cause(9 * kMiB, 0, std::nullopt) == OomCause::unclear);
  CHECK(cause(512, 0, std::nullopt) == OomCause::elsewhere);
}

TEST_CASE("out of memory: of segments that cannot hold what lived nothing is told") {
  Builder b;
  b.alloc(at(100), 30 * kMiB);
  b.event(AllocatorAction::oom, 64 * kMiB, 18 * kMiB);
  b.segment(kBase, 20 * kMiB, {{at(8), 2 * kMiB}});
  const AllocatorHistory h = history_of(b.done());
  const State state = state_at(h, h.devices[0], 1);
  CHECK_FALSE(fit_together(free_memory(h, state, std::nullopt), live_bytes(h, state)));
  const OutOfMemory oom = out_of_memory(b.snapshot, h, h.devices[0], 1, std::nullopt);
  CHECK(oom.memory.reserved == 0);
  CHECK(oom.cause == OomCause::unclear);
}

TEST_CASE("growth: by stack at the ends of steps") {
  Builder b;
  const StackId leak = b.stack({{"a.py", "leak"}}), work = b.stack({{"a.py", "work"}});
  std::uint64_t next = 0x1000;
  for (int step = 0; step < 5; step++) {
    b.alloc(next, 100, leak);
    b.alloc(0x900000, 5000, work);
    b.free(0x900000, 5000, work);
    b.mark("Optimizer.step#SGD.step", "START");
    b.alloc(0x910000, 10);
    b.mark("Optimizer.step#SGD.step", "END");
    b.free(0x910000, 10);
    next += 4096;
  }
  const AllocatorHistory h = history_of(b.done());
  const GrowthMoments when = growth_moments(h.devices[0]);
  CHECK(when.are_steps);
  REQUIRE(when.moments.size() == 4);  // without the first step
  const auto all = growth_by_stack(h, h.devices[0], when.moments);
  REQUIRE(!all.empty());
  CHECK(all[0].stack == leak);
  CHECK(all[0].bytes == std::vector<std::int64_t>{200, 300, 400, 500});
  CHECK(all[0].growth() == 300);
  CHECK(all[0].steady());
  for (const StackGrowth& one : all) CHECK(one.stack != work);
}

TEST_CASE("outliers: far from the median by its usual distance, and by a fiftieth") {
  CHECK_FALSE(outlier_of({1, 100}));
  CHECK_FALSE(outlier_of({100, 100, 100, 100}));
  CHECK_FALSE(outlier_of({1000, 1001, 1002, 1010}));  // far, but not by a fiftieth
  const auto odd = outlier_of({100, 101, 99, 100, 160});
  REQUIRE(odd);
  CHECK(odd->index == 4);
  CHECK(odd->median == 100);
  const auto less = outlier_of({100, 100, 100, 50});
  REQUIRE(less);
  CHECK(less->index == 3);
  CHECK(less->distances < 0);
  CHECK_FALSE(outlier_of({10, 20, 30, 40, 50}));  // all are far apart
}

}  // namespace stepscope::snapshot
