// Values that change at instants and hold until the next: queue lengths, memory, counters.
//
// Input: up to 10^7 points by time; one pass each. What the page and JSON get is thinned, so that a long recording is
// not longer than a short one; the lowest and the highest value of every piece of time survive it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/answer.h"

namespace stepscope {

struct Curve {
  std::vector<std::int64_t> t_ns;  // ascending; of equal times the last value holds
  std::vector<double> v;

  std::size_t size() const { return t_ns.size(); }
  void add(std::int64_t t, double value) {
    t_ns.push_back(t);
    v.push_back(value);
  }
};

// A curve whose points lie elsewhere.
struct CurveView {
  std::span<const std::int64_t> t_ns;
  std::span<const double> v;

  CurveView() = default;
  CurveView(std::span<const std::int64_t> times, std::span<const double> values) : t_ns(times), v(values) {}
  CurveView(const Curve& curve) : t_ns(curve.t_ns), v(curve.v) {}  // NOLINT: a curve is one
  std::size_t size() const { return t_ns.size(); }
};

struct CurveStats {
  double low = 0, high = 0;
  double mean = 0;              // weighted by how long each value held, up to `end_ns`; of one instant: its last value
  std::int64_t high_at_ns = 0;  // when the highest value was first reached
};

// Of a curve with at least one point. `end_ns`: until when the last value held.
CurveStats stats_of(CurveView curve, std::int64_t end_ns);

// At most about 4 * `pieces` points: of each piece of time the first, lowest, highest and last.
Series thinned(std::string name, Unit unit, CurveView curve, std::size_t pieces = 200);

}  // namespace stepscope
