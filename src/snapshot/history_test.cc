// What lived when, and what the allocator held, by hand: also where a file does not fit together.
#include "snapshot/history.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "snapshot/class_curves.h"
#include "snapshot/curve.h"
#include "snapshot/rounding.h"
#include "snapshot/snapshot_fixture.h"
#include "snapshot/state.h"

namespace stepscope::snapshot {
namespace {

using snapshot_fixture::Builder;
using snapshot_fixture::kMiB;
using Action = AllocatorAction;

std::vector<std::uint64_t> alive_at(const AllocatorHistory& history, std::uint32_t moment) {
  std::vector<std::uint64_t> addresses;
  for (const std::uint32_t row : state_at(history, history.devices[0], moment).rows)
    addresses.push_back(history.allocations.address[row]);
  return addresses;
}

std::vector<std::pair<std::uint64_t, std::int64_t>> held_at(const AllocatorHistory& history, std::uint32_t moment) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> all;
  for (const Segment& one : state_at(history, history.devices[0], moment).segments)
    all.emplace_back(one.address, one.bytes);
  return all;
}

using Addresses = std::vector<std::uint64_t>;
using Held = std::vector<std::pair<std::uint64_t, std::int64_t>>;

}  // namespace

TEST_CASE("history: classes over time add up to what lives, however few the moments and the classes") {
  Builder b;
  b.segment(1 << 20, 1 << 20, {{1 << 20, 512}});  // older than the recording
  for (std::uint64_t i = 0; i < 40; i++) {
    b.mark("part " + std::to_string(i % 5), "START");
    b.alloc(4096 * (i + 1), static_cast<std::int64_t>(100 + i));
    b.mark("part " + std::to_string(i % 5), "END");
    if (i % 3 == 2) b.free(4096 * i, static_cast<std::int64_t>(99 + i));
  }
  const AllocatorHistory h = history_of(b.done());
  const SnapshotDevice& device = h.devices[0];
  const std::vector<std::int64_t> held = held_by_moment(h, device);
  for (const std::size_t pieces : {1u, 7u, 1000u}) {
    for (const std::size_t most : {1u, 3u, 50u}) {
      const ClassCurves curves = class_curves(h, device, held, pieces, most);
      CHECK(curves.classes.size() == std::min<std::size_t>(most == 50 ? most : most + 1, 6));
      CHECK(curves.moments.size() <= pieces + 1);
      CHECK(std::is_sorted(curves.moments.begin(), curves.moments.end()));
      CHECK(std::find(curves.moments.begin(), curves.moments.end(), device.peak) != curves.moments.end());
      for (std::size_t m = 0; m < curves.moments.size(); m++) {
        std::int64_t sum = 0;
        for (const ClassCurve& one : curves.classes) sum += one.bytes[m];
        CHECK(sum == live_bytes(h, state_at(h, device, curves.moments[m])).asked);
      }
    }
  }
}

TEST_CASE("history: allocations, older ones and static blocks") {
  Builder b;
  b.alloc(4096, 100);
  b.free(8192, 300);  // older than the trace
  b.alloc(8192, 50);
  b.free(4096, 100);
  b.segment(4096, 1 << 20, {{8192, 512}, {16384, 1024}});  // the last one is static
  const AllocatorHistory h = history_of(b.done());
  REQUIRE(h.devices.size() == 1);
  const SnapshotDevice& device = h.devices[0];
  CHECK(device.static_bytes == 1024);
  CHECK(device.peak_bytes == 400);
  CHECK(device.peak == 1);
  CHECK(device.faults.unknown_frees == 1);
  CHECK(device.faults.unknown_freed_bytes == 300);
  CHECK(held_by_moment(h, device) == std::vector<std::int64_t>{300, 400, 400, 100, 150, 150, 50});
  CHECK(alive_at(h, 0) == Addresses{8192, 16384});
  CHECK(alive_at(h, 2) == Addresses{4096, 8192, 16384});  // its free was asked for, and is not over
  CHECK(alive_at(h, 3) == Addresses{4096, 16384});
  CHECK(alive_at(h, 6) == Addresses{8192, 16384});
  CHECK(issues_of(b.snapshot, h).empty());
}

TEST_CASE("history: a trace without completed frees ends blocks where they are freed") {
  Builder b;
  b.alloc(4096, 100);
  b.event(Action::free_requested, 4096, 100);
  b.alloc(4096, 70);
  const AllocatorHistory h = history_of(b.done());
  CHECK(held_by_moment(h, h.devices[0]) == std::vector<std::int64_t>{0, 100, 0, 70});
  CHECK(h.devices[0].faults.lost_frees == 0);
}

TEST_CASE("history: what does not fit together is counted") {
  Builder b;
  b.alloc(4096, 100);
  b.alloc(4096, 200);  // nothing freed it
  b.free(4096, 200);
  b.free(4096, 200);  // nothing allocated it
  b.alloc(8192, 10);  // and it is not there at the end
  b.event(Action::alloc, 12288, kNotRecorded);
  b.segment(4096, 1 << 20, {{4096, 512}, {12288, 512}});
  const AllocatorHistory h = history_of(b.done());
  const HistoryFaults& faults = h.devices[0].faults;
  CHECK(faults.lost_frees == 1);
  CHECK(faults.lost_allocs == 3);  // two events of the second free, and the block at the end
  CHECK(faults.not_at_end == 1);
  CHECK(faults.no_size == 1);
  CHECK(issues_of(b.snapshot, h).size() == 4);
  CHECK(h.devices[0].peak_bytes == 522);  // what lies there at the end counts from the free on
}

TEST_CASE("history: segments backwards from the end") {
  Builder b;
  b.event(Action::segment_free, 0x1000000, 2 * kMiB);  // older than the trace
  b.event(Action::segment_alloc, 0x2000000, 20 * kMiB);
  b.event(Action::segment_alloc, 0x1000000, 2 * kMiB);  // the same address again
  b.segment(0x1000000, 2 * kMiB, {}, "small");
  b.segment(0x2000000, 20 * kMiB, {});
  b.segment(0x9000000, 30 * kMiB, {});
  const AllocatorHistory h = history_of(b.done());
  CHECK(held_at(h, 0) == Held{{0x1000000, 2 * kMiB}, {0x9000000, 30 * kMiB}});
  CHECK(held_at(h, 1) == Held{{0x9000000, 30 * kMiB}});
  CHECK(held_at(h, 2) == Held{{0x2000000, 20 * kMiB}, {0x9000000, 30 * kMiB}});
  CHECK(held_at(h, 3) == Held{{0x1000000, 2 * kMiB}, {0x2000000, 20 * kMiB}, {0x9000000, 30 * kMiB}});
  CHECK(reserved_by_moment(h, h.devices[0]) == std::vector<std::int64_t>{32 * kMiB, 30 * kMiB, 50 * kMiB, 52 * kMiB});
  CHECK(h.devices[0].faults.lost_ranges == 0);
}

TEST_CASE("history: expandable segments grow, lose pages in the middle and get them back") {
  constexpr std::uint64_t kBase = 0x10000000;
  Builder b;
  b.event(Action::segment_map, kBase, 40 * kMiB);
  b.event(Action::segment_map, kBase + 40 * kMiB, 20 * kMiB);
  b.event(Action::segment_unmap, kBase + 20 * kMiB, 20 * kMiB);
  b.event(Action::segment_map, kBase + 20 * kMiB, 20 * kMiB);
  b.event(Action::segment_unmap, kBase, 20 * kMiB);
  b.segment(kBase + 20 * kMiB, 40 * kMiB, {}, "large", true);
  const AllocatorHistory h = history_of(b.done());
  CHECK(held_at(h, 0).empty());
  CHECK(held_at(h, 1) == Held{{kBase, 40 * kMiB}});
  CHECK(held_at(h, 2) == Held{{kBase, 60 * kMiB}});
  CHECK(held_at(h, 3) == Held{{kBase, 20 * kMiB}, {kBase + 40 * kMiB, 20 * kMiB}});
  CHECK(held_at(h, 4) == Held{{kBase, 60 * kMiB}});
  CHECK(held_at(h, 5) == Held{{kBase + 20 * kMiB, 40 * kMiB}});
  CHECK(h.devices[0].faults.lost_ranges == 0);
}

TEST_CASE("history: segments that overlap or are freed twice are told") {
  Builder b;
  b.event(Action::segment_free, 0x1000000, 4 * kMiB);
  b.event(Action::segment_free, 0x1000000, 4 * kMiB);
  b.event(Action::segment_alloc, 0x5000000, 4 * kMiB);  // not there at the end
  b.segment(0x1100000, 4 * kMiB, {});
  const AllocatorHistory h = history_of(b.done());
  CHECK(h.devices[0].faults.lost_ranges == 3);
  CHECK(issues_of(b.snapshot, h).size() == 1);
}

TEST_CASE("history: two devices of one list of events count once, and numbers beyond reason not at all") {
  Builder b;
  b.alloc(4096, 100);
  b.segment(4096, 1 << 20, {{4096, 512}});
  b.snapshot.segments[0].device = 1'000'000'000;
  b.done();
  b.snapshot.devices.push_back(b.snapshot.devices[0]);
  const AllocatorHistory h = history_of(b.snapshot);
  REQUIRE(h.devices.size() == 1);
  CHECK(h.allocations.size() == 1);
}

TEST_CASE("history: sizes at the limits of numbers") {
  Builder b;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  b.alloc(~std::uint64_t{0} - 1, kMost);
  b.alloc(1, kMost);
  b.event(Action::segment_alloc, ~std::uint64_t{0} - 100, kMost);
  b.segment(~std::uint64_t{0} - 100, kMost, {{~std::uint64_t{0} - 50, kMost}});
  const AllocatorHistory h = history_of(b.done());
  CHECK(h.devices[0].peak_bytes == kMost);
  CHECK(live_bytes(h, state_at(h, h.devices[0], 3)).asked == kMost);
}

TEST_CASE("rounding: as torch's allocator does") {
  CudaSnapshot plain;
  const Rounding r(plain);
  CHECK(r.rounded(0) == 512);
  CHECK(r.rounded(1) == 512);
  CHECK(r.rounded(513) == 1024);
  CHECK(r.taken(512, 512) == 512);
  CHECK(r.taken(512, 1024) == 512);                // of small blocks any rest is split off
  CHECK(r.taken(2 * kMiB, 3 * kMiB) == 3 * kMiB);  // of large ones more than 1 MiB
  CHECK(r.taken(2 * kMiB, 3 * kMiB + 512) == 2 * kMiB);
  CHECK(r.taken(1024, 512) == 1024);
  CudaSnapshot set;
  set.settings = {{"max_split_size", std::int64_t{20 * kMiB}},
                  {"roundup_power2_divisions.1", std::int64_t{4}},
                  {"roundup_power2_divisions.64", std::int64_t{2}},
                  {"roundup_power2_divisions.x", std::int64_t{2}}};
  const Rounding s(set);
  CHECK(s.taken(30 * kMiB, 60 * kMiB) == 60 * kMiB);
  CHECK(s.rounded(kMiB + 1) == kMiB + kMiB / 4);  // 1.25, 1.5, 1.75, 2
  CHECK(s.rounded(kMiB) == kMiB);
  CHECK(s.rounded(65 * kMiB) == 96 * kMiB);
  CHECK(s.rounded(5 * kMiB + 1) == 5 * kMiB + 512);  // no divisions for 4 MiB
  CudaSnapshot expandable;
  expandable.settings = {{"expandable_segments", true}};
  CHECK(Rounding(expandable).taken(2 * kMiB, 2 * kMiB + 512) == 2 * kMiB);
}

TEST_CASE("history: blocks that are gone take what would not be split off") {
  Builder b;
  b.event(Action::segment_alloc, 0x2000000, 20 * kMiB);
  b.alloc(0x2000000, 12 * kMiB);                   // 8 MiB are split off
  b.alloc(0x2000000 + 12 * kMiB, 7 * kMiB + 100);  // the rest is less than 1 MiB
  b.free(0x2000000, 12 * kMiB);
  b.free(0x2000000 + 12 * kMiB, 7 * kMiB + 100);
  b.segment(0x2000000, 20 * kMiB, {});
  const AllocatorHistory h = history_of(b.done());
  CHECK(h.allocations.block_bytes[0] == 12 * kMiB);
  CHECK(h.allocations.block_bytes[1] == 8 * kMiB);
}

TEST_CASE("history: times and moments") {
  Builder b;
  for (int i = 0; i < 3; i++) b.alloc(4096 + static_cast<std::uint64_t>(i) * 512, 512);
  const AllocatorHistory h = history_of(b.done());
  const SnapshotDevice& device = h.devices[0];
  CHECK(moment_at(b.snapshot, device, 0) == 0);
  CHECK(moment_at(b.snapshot, device, 1'000'001) == 1);
  CHECK(moment_at(b.snapshot, device, 2'000'000) == 3);
  CHECK(time_of(b.snapshot, device, 2) == 1'000'003'000);
  const Series series = thinned_by_event("held", b.snapshot, device, held_by_moment(h, device));
  CHECK(series.event == std::vector<std::int64_t>{-1, 0, 1, 2});
  CHECK(series.v.back() == 1536);
}

}  // namespace stepscope::snapshot
