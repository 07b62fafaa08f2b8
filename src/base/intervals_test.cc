#include "base/intervals.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace stepscope;

namespace {

// The slow, obvious way: one flag per instant.
using Bits = std::vector<bool>;
Bits bits(const Intervals& set) {
  Bits out(64, false);
  for (const auto& one : set) std::fill(out.begin() + one.start, out.begin() + one.end, true);
  return out;
}
bool is_set(const Intervals& set) {
  for (std::size_t i = 0; i < set.size(); i++) {
    if (set[i].end <= set[i].start) return false;
    if (i > 0 && set[i].start <= set[i - 1].end) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("touching intervals merge, empty ones vanish") {
  CHECK(make_intervals({{5, 7}, {0, 2}, {2, 5}, {9, 9}, {12, 11}}) == Intervals{{0, 7}});
  CHECK(make_intervals({}).empty());
  CHECK(length(make_intervals({{0, 10}, {3, 4}, {20, 21}})) == 11);
}

TEST_CASE("set arithmetic agrees with counting instants") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; round++) {
    std::vector<Interval> raw[2];
    for (auto& rows : raw) {
      for (unsigned i = random() % 8; i > 0; i--) {
        const std::int64_t start = random() % 60;
        rows.push_back({start, std::min<std::int64_t>(64, start + random() % 9)});
      }
    }
    const Intervals a = make_intervals(raw[0]), b = make_intervals(raw[1]);
    const Bits in_a = bits(a), in_b = bits(b);
    Bits both(64), either(64), only_a(64);
    for (int t = 0; t < 64; t++) {
      both[t] = in_a[t] && in_b[t];
      either[t] = in_a[t] || in_b[t];
      only_a[t] = in_a[t] && !in_b[t];
    }
    REQUIRE(in_a == bits(raw[0]));
    REQUIRE(is_set(a));
    REQUIRE(bits(intersect(a, b)) == both);
    REQUIRE(is_set(intersect(a, b)));
    REQUIRE(bits(unite(a, b)) == either);
    REQUIRE(is_set(unite(a, b)));
    REQUIRE(bits(subtract(a, b)) == only_a);
    REQUIRE(is_set(subtract(a, b)));
    REQUIRE(shared_length(a, b) == std::count(both.begin(), both.end(), true));
    const std::vector<Interval> windows{{0, 10}, {10, 10}, {15, 40}, {40, 64}};
    const auto parts = lengths_in(a, windows);
    for (std::size_t w = 0; w < windows.size(); w++) {
      REQUIRE(parts[w] == std::count(in_a.begin() + windows[w].start, in_a.begin() + windows[w].end, true));
    }
  }
}

TEST_CASE("many runs and few runs sort alike") {
  std::mt19937 random(11);
  for (const std::size_t run_length : {1u, 3u, 50u, 1000u}) {
    std::vector<Interval> rows;
    for (std::size_t i = 0; i < 3000; i++) {
      const std::int64_t start = static_cast<std::int64_t>(i % run_length) * 40 + random() % 30;
      rows.push_back({start, start + 5});
    }
    std::vector<Interval> sorted = rows;
    std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.start < b.start; });
    CHECK(make_intervals(rows) == make_intervals(sorted));
  }
}
