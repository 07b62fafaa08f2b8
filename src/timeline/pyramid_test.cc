// Rows and levels of a timeline: nothing is lost, nothing overlaps, and a query costs by its width.
#include "timeline/pyramid.h"

#include <doctest/doctest.h>

#include <random>

#include "derive/derive.h"
#include "model/trace_fixture.h"

namespace stepscope {
namespace {

using timeline::Pyramid;
using timeline::Rect;
using timeline::RectClass;

std::vector<Rect> rects(const Pyramid& pyramid, std::size_t lane, std::uint32_t row, std::int64_t from, std::int64_t to,
                        std::int64_t merge) {
  std::vector<Rect> out;
  pyramid.query(lane, row, from, to, merge, out);
  return out;
}

TEST_CASE("pyramid: slices stand in rows by nesting, those that overlap move down") {
  TraceFixture f;
  const TrackId cpu = f.host("1"), gpu = f.stream("7");
  f.op(cpu, "aten::linear", 0, 100);
  f.op(cpu, "aten::addmm", 10, 50);
  f.op(cpu, "late", 90, 50);  // overlaps without being inside
  f.kernel(gpu, "gemm", 30, 40);
  f.kernel(gpu, "ncclDevKernel_AllReduce", 50, 40);  // beside it
  derive::derive(f.trace, {});
  const Pyramid pyramid(f.trace);
  REQUIRE(pyramid.lanes().size() == 2);
  CHECK(pyramid.lanes()[0].rows == 2);
  CHECK(pyramid.lanes()[1].rows == 2);
  CHECK(rects(pyramid, 0, 0, 0, 1000, 1).size() == 1);
  CHECK(rects(pyramid, 0, 1, 0, 1000, 1).size() == 2);
  CHECK(rects(pyramid, 1, 1, 0, 1000, 1)[0].kind == RectClass::communication);
  CHECK(pyramid.start_ns() == 0);
  CHECK(pyramid.end_ns() == 140);
  std::size_t lane = 9;
  std::uint32_t row = 9;
  CHECK(pyramid.place_of(static_cast<SliceId>(2), lane, row));
  CHECK(lane == 0);
  CHECK(row == 1);
  // the edges of a stretch: what ends where it begins is not in it
  CHECK(rects(pyramid, 0, 0, 100, 200, 1).empty());
  CHECK(rects(pyramid, 0, 0, 99, 100, 1).size() == 1);
  CHECK(rects(pyramid, 7, 0, 0, 100, 1).empty());
}

struct Many {
  TraceFixture f;
  std::int64_t busy_ns = 0, end_ns = 0;
  std::size_t count = 0;

  explicit Many(std::size_t slices) : count(slices) {
    std::mt19937 random(7);
    const TrackId cpu = f.host("1");
    std::int64_t now = 1'000'000'007;
    for (std::size_t i = 0; i < slices; i++) {
      const std::int64_t dur = random() % 1000 == 0 ? 5'000'000 : static_cast<std::int64_t>(random() % 9000);
      f.op(cpu, "op" + std::to_string(random() % 50), now, dur);
      busy_ns += dur;
      now += dur + static_cast<std::int64_t>(random() % 3000);
    }
    end_ns = now;
    derive::derive(f.trace, {});
  }
};

TEST_CASE("pyramid: at every level all slices are counted and all time is there") {
  Many many(50'000);
  const Pyramid pyramid(many.f.trace);
  CHECK(pyramid.bytes() < many.count * 48);
  std::size_t before = many.count + 1;
  for (std::int64_t merge = 1; merge < many.end_ns; merge *= 8) {
    CAPTURE(merge);
    const auto found = rects(pyramid, 0, 0, 0, many.end_ns, merge);
    std::uint64_t count = 0;
    double busy = 0;
    std::int64_t end = 0;
    for (const Rect& rect : found) {
      CHECK(rect.start_ns >= end);  // none overlaps the one before
      end = rect.start_ns + rect.dur_ns;
      count += rect.count;
      busy += static_cast<double>(rect.dur_ns) * rect.fill;
      CHECK((rect.slice == SliceId::none) == (rect.count > 1));
    }
    CHECK(count == many.count);
    CHECK(busy == doctest::Approx(static_cast<double>(many.busy_ns)).epsilon(1e-4));
    CHECK(found.size() <= before);
    before = found.size();
  }
}

TEST_CASE("pyramid: a query gives no more rectangles than its width has room for") {
  Many many(200'000);
  const Pyramid pyramid(many.f.trace);
  constexpr std::int64_t kPixels = 1000;
  for (std::int64_t width = many.end_ns - 1'000'000'000; width > 1000; width /= 3) {
    const std::int64_t merge = std::max<std::int64_t>(2 * width / kPixels, 1);
    const auto found = rects(pyramid, 0, 0, 1'000'000'000, 1'000'000'000 + width, merge);
    CHECK(found.size() <= kPixels + 2);  // one merged and one long one for each 2 pixels
  }
}

TEST_CASE("pyramid: what is nested too deep is drawn in the last row") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  for (int i = 0; i < 1500; i++) f.slice(cpu, "python_function", "f", i, 10'000 - 2 * i);
  derive::derive(f.trace, {});
  const Pyramid pyramid(f.trace);
  CHECK(pyramid.lanes()[0].rows == 1024);
  CHECK(pyramid.lanes()[0].slices == 1500);
  CHECK(rects(pyramid, 0, 1023, 0, 10'000, 1 << 20).at(0).count == 1500 - 1023);
}

TEST_CASE("pyramid: the recording's own slice does not stretch the picture") {
  TraceFixture f;
  f.op(f.host("1"), "aten::mm", 1000, 100);
  f.slice(f.host("PyTorch Profiler"), "Trace", "PyTorch Profiler (0)", 0, 90);
  derive::derive(f.trace, {});
  const Pyramid pyramid(f.trace);
  CHECK(pyramid.start_ns() == 1000);
  CHECK(pyramid.end_ns() == 1100);
  CHECK(pyramid.lanes().size() == 2);
}

TEST_CASE("pyramid: of nothing there is nothing") {
  TraceFixture f;
  f.host("1");
  derive::derive(f.trace, {});
  const Pyramid pyramid(f.trace);
  CHECK(pyramid.lanes().empty());
  CHECK(pyramid.end_ns() == 0);
}

}  // namespace
}  // namespace stepscope
