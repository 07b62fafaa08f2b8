#include <doctest/doctest.h>

#include <random>
#include <tuple>

#include "derive/derive.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

Trace& derived(TraceFixture& f) {
  REQUIRE(derive::derive(f.trace, {}));
  return f.trace;
}

TEST_CASE("call tree: the innermost earlier slice that encloses a slice whole is its parent") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  const SliceId leaf = f.slice(cpu, "cpu_op", "leaf", 20, 5);  // file order is not time order
  const SliceId root = f.slice(cpu, "cpu_op", "root", 0, 100);
  const SliceId middle = f.slice(cpu, "cpu_op", "middle", 10, 30);
  const SliceId same_as_middle = f.slice(cpu, "cpu_op", "same", 10, 30);
  const SliceId after = f.slice(cpu, "cpu_op", "after", 40, 60);
  const SliceId beyond = f.slice(cpu, "cpu_op", "beyond", 100, 1);
  const Trace& trace = derived(f);
  CHECK(trace.slices.parent[root] == SliceId::none);
  CHECK(trace.slices.parent[middle] == root);
  CHECK(trace.slices.parent[same_as_middle] == middle);
  CHECK(trace.slices.parent[leaf] == same_as_middle);
  CHECK(trace.slices.parent[after] == root);
  CHECK(trace.slices.parent[beyond] == SliceId::none);
  CHECK(trace.slices.depth[leaf] == 3);
  CHECK(trace.links.partial_overlaps == 0);
  CHECK(trace.issues.empty());
}

TEST_CASE("call tree: slices that overlap without nesting are kept and counted") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  const SliceId root = f.slice(cpu, "cpu_op", "root", 0, 100);
  f.slice(cpu, "cpu_op", "early", 10, 30);
  const SliceId late = f.slice(cpu, "cpu_op", "late", 30, 30);
  const SliceId in_late = f.slice(cpu, "cpu_op", "in late", 45, 5);
  const Trace& trace = derived(f);
  CHECK(trace.slices.parent[late] == root);
  CHECK(trace.slices.parent[in_late] == late);
  CHECK(trace.links.partial_overlaps == 1);
  REQUIRE(trace.issues.size() == 1);
  CHECK(trace.issues[0].code == "partial_overlap");
  CHECK(trace.issues[0].count == 1);
}

TEST_CASE("call tree: mirrored annotations and waits never become parents of kernels") {
  TraceFixture f;
  const TrackId gpu = f.stream("7");
  const SliceId outer = f.slice(gpu, "gpu_user_annotation", "step", 0, 100);
  const SliceId inner = f.slice(gpu, "gpu_user_annotation", "forward", 0, 15);
  const SliceId kernel = f.kernel(gpu, "k", 10, 10);  // cut by the inner annotation's end
  const SliceId wait = f.device(gpu, "cuda_sync", "Stream Wait Event", 5, 10);
  const Trace& trace = derived(f);
  CHECK(trace.slices.parent[inner] == outer);
  CHECK(trace.slices.parent[kernel] == SliceId::none);
  CHECK(trace.slices.parent[wait] == SliceId::none);
  CHECK(trace.links.partial_overlaps == 0);
}

TEST_CASE("call tree: by_track is ordered by track, start, longer first, file order") {
  TraceFixture f;
  std::vector<TrackId> tracks;
  for (const char* name : {"1", "2", "3"}) tracks.push_back(f.host(name));
  std::mt19937 random(7);
  for (int i = 0; i < 3000; i++) f.slice(tracks[random() % 3], "cpu_op", "op", random() % 500, random() % 40);
  const Trace& trace = derived(f);
  const Slices& s = trace.slices;
  REQUIRE(trace.track_begin.size() == 4);
  for (std::size_t track = 0; track < 3; track++) {
    for (std::uint32_t at = trace.track_begin[track]; at < trace.track_begin[track + 1]; at++) {
      const SliceId id = trace.by_track[at];
      CHECK(s.track[id] == tracks[track]);
      if (at == trace.track_begin[track]) continue;
      const SliceId last = trace.by_track[at - 1];
      const auto key = [&](SliceId x) { return std::tuple(s.start_ns[x], -s.dur_ns[x], x); };
      CHECK(key(last) < key(id));
      // A parent is the latest earlier slice in this order that encloses the slice.
      SliceId expected = SliceId::none;
      for (std::uint32_t before = at; before-- > trace.track_begin[track] && expected == SliceId::none;) {
        const SliceId other = trace.by_track[before];
        if (s.end_ns(other) >= s.end_ns(id) && s.end_ns(other) > s.start_ns[id]) expected = other;
      }
      CHECK(s.parent[id] == expected);
    }
  }
}

TEST_CASE("derive: an empty trace is fine") {
  TraceFixture f;
  const Trace& trace = derived(f);
  CHECK(trace.steps.empty());
  CHECK(trace.step_source == "no steps: the recording is empty");
}

}  // namespace
}  // namespace stepscope
