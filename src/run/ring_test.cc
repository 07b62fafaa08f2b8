#include "run/ring.h"

#include <doctest/doctest.h>

#include "base/temp_fixture.h"
#include "run/progress.h"
#include "run/ring_fixture.h"

namespace stepscope::run {
namespace {

constexpr const char* kAbout = R"({"host": "h", "pid": 7, "rank": 3, "world_size": 8, "started_unix_ns": 5})";
constexpr std::uint16_t kClock = RingText::kClock, kStep = RingText::kStep, kPhase = RingText::kPhase;

}  // namespace

TEST_CASE("ring: a pair of clocks that is some ns behind makes no steps overlap") {
  RingText text(8, R"({"host": "h", "pid": 1, "rank": 0})");
  text.add(1000, 0, 5'000'000, kClock);
  text.add(1000, 400, 0, kStep, 4);
  text.add(1400, 0, 5'000'350, kClock);  // 50 ns behind
  text.add(1400, 400, 1, kStep, 4);
  const TempFolder folder;
  const auto ring = read_ring(folder.put("a.ring", text.bytes()));
  REQUIRE(ring);
  REQUIRE(ring->marks.size() == 2);
  CHECK(ring->marks[0].start_ns + ring->marks[0].dur_ns == 5'000'400);
  CHECK(ring->marks[1].start_ns == 5'000'400);
  CHECK(ring->marks[1].dur_ns == 350);
}

TEST_CASE("ring: phases of centuries add up to no more than a number can hold") {
  Ring ring;
  for (int i = 0; i < 3; i++) {
    ring.marks.push_back({.dur_ns = 9'000'000'000'000'000'000, .kind = MarkKind::phase, .phase = 2});
  }
  ring.marks.push_back({.dur_ns = 100, .kind = MarkKind::step, .phase = 4});
  const RankProgress progress = progress_of(ring, 20);
  CHECK(progress.phase_ns[0] == 0);
  CHECK(progress.phase_ns[2] > 0);
}

TEST_CASE("ring: marks are placed by the pair of clocks before them") {
  RingText text(16, kAbout);
  text.add(1000, 0, 5'000'000, kClock);
  text.add(1100, 50, 0, kPhase, 2);
  text.add(1000, 300, 0, kStep, 4);
  text.add(2000, 0, 5'001'500, kClock);  // the wall clock was set by 500 ns
  text.add(2100, 10, 1, kStep, 4);
  const TempFolder folder;
  const auto ring = read_ring(folder.put("h_7.ring", text.bytes()));
  REQUIRE(ring);
  CHECK(ring->rank == 3);
  CHECK(ring->world_size == 8);
  CHECK(ring->dropped == 0);
  REQUIRE(ring->marks.size() == 3);
  CHECK(ring->marks[0].start_ns == 5'000'100);
  CHECK(ring->marks[0].phase == 2);
  CHECK(ring->marks[2].start_ns == 5'001'600);
  CHECK(ring->marks[2].kind == MarkKind::step);
}

TEST_CASE("ring: the newest records stay when it is full") {
  RingText text(4, kAbout);
  text.add(0, 0, 100, kClock);
  for (std::int64_t step = 0; step < 9; step++) text.add(step * 10, 10, step, kStep, 4);
  text.add(95, 0, 195, kClock);
  const TempFolder folder;
  const auto ring = read_ring(folder.put("h_7.ring", text.bytes()));
  REQUIRE(ring);
  CHECK(ring->dropped == 7);
  REQUIRE(ring->marks.size() == 3);
  CHECK(ring->marks.front().step == 6);
  CHECK(ring->marks.front().start_ns == 160);
}

TEST_CASE("ring: damaged files are refused, whatever their head says") {
  const TempFolder folder;
  const auto refused = [&](const std::string& bytes) { return !read_ring(folder.put("x.ring", bytes)); };
  const std::string good = RingText(4, kAbout).bytes();
  CHECK_FALSE(refused(good));
  CHECK(refused(""));
  CHECK(refused("STEPRING"));
  CHECK(refused(good.substr(0, 300)));
  for (const std::size_t at : {0, 8, 12, 16, 20, 24, 28}) {
    std::string bad = good;
    bad.replace(at, 4, "\xff\xff\xff\x7f", 4);
    CAPTURE(at);
    CHECK(refused(bad));
  }
  RingText negative(4, kAbout);
  negative.add(0, -5, 0, kStep);
  const auto ring = read_ring(folder.put("y.ring", negative.bytes()));
  REQUIRE(ring);
  CHECK(ring->marks.empty());
}

TEST_CASE("progress: medians over the newest steps, and the rank whose own work takes longest") {
  const auto rank = [](std::int64_t number, std::int64_t forward) {
    Ring ring;
    ring.rank = number;
    ring.host = "elsewhere";
    for (std::int64_t step = 0; step < 30; step++) {
      const std::int64_t start = step * 1000;
      ring.marks.push_back({start, forward, step, MarkKind::phase, 2});
      ring.marks.push_back({start + forward, 900 - forward, step, MarkKind::phase, 3});
      ring.marks.push_back({start, 1000, step, MarkKind::step, 4});
    }
    return progress_of(ring, 20);
  };
  const RankProgress fast = rank(0, 100);
  CHECK(fast.steps == 30);
  CHECK(fast.step_ns.size() == 20);
  CHECK(fast.median_step_ns == 1000);
  CHECK(fast.phase_ns[2] == 100);
  CHECK(fast.phase_ns[3] == 800);
  CHECK(fast.phase_ns[0] == 100);
  CHECK(fast.running);
  CHECK(slowest({rank(0, 100), rank(1, 400), rank(2, 110)}) == 1);
  CHECK(slowest({rank(0, 100), rank(1, 120)}) == std::nullopt);
  CHECK(slowest({rank(0, 100)}) == std::nullopt);
}

}  // namespace stepscope::run
