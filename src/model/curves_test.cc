#include "model/curves.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace stepscope {
namespace {

TEST_CASE("curves: the mean weighs each value by how long it held") {
  Curve curve;
  curve.add(0, 10);
  curve.add(90, 0);
  curve.add(100, 5);
  const CurveStats stats = stats_of(curve, 200);
  CHECK(stats.mean == (90 * 10 + 10 * 0 + 100 * 5) / 200.0);
  CHECK(stats.low == 0);
  CHECK(stats.high == 10);
  CHECK(stats.high_at_ns == 0);
}

TEST_CASE("curves: values of one instant have the mean of the last") {
  Curve curve;
  curve.add(7, 1);
  curve.add(7, 3);
  CHECK(stats_of(curve, 7).mean == 3);
  CHECK(stats_of(curve, 0).mean == 3);  // an end before the last point is no end
}

TEST_CASE("curves: thinning keeps ends and extremes, and the order of time") {
  Curve curve;
  for (int i = 0; i < 100'000; i++) curve.add(i, i % 7);
  curve.v[12'345] = 1000;
  curve.v[54'321] = -1000;
  const Series series = thinned("x", Unit::count, curve, 50);
  CHECK(series.t_ns.size() <= 4 * 51);
  CHECK(std::is_sorted(series.t_ns.begin(), series.t_ns.end()));
  CHECK(series.t_ns.front() == 0);
  CHECK(series.t_ns.back() == 99'999);
  CHECK(*std::max_element(series.v.begin(), series.v.end()) == 1000);
  CHECK(*std::min_element(series.v.begin(), series.v.end()) == -1000);
  CHECK(series.t_ns[static_cast<std::size_t>(std::max_element(series.v.begin(), series.v.end()) - series.v.begin())] ==
        12'345);
}

TEST_CASE("curves: few points stay as they are, far apart ones too") {
  Curve curve;
  curve.add(INT64_MIN + 1, 1);
  curve.add(INT64_MAX - 1, 2);
  CHECK(thinned("x", Unit::count, curve).t_ns == curve.t_ns);
  CHECK(thinned("x", Unit::count, Curve{}).t_ns.empty());
}

}  // namespace
}  // namespace stepscope
