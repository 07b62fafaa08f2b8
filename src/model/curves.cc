#include "model/curves.h"

#include <algorithm>
#include <array>

namespace stepscope {
namespace {

double distance(std::int64_t from, std::int64_t to) {
  return static_cast<double>(static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from));
}

// The points [first, last) of one piece, thinned.
void add_piece(Series& to, CurveView curve, std::size_t first, std::size_t last) {
  if (first == last) return;
  std::size_t low = first, high = first;
  for (std::size_t i = first; i < last; i++) {
    if (curve.v[i] < curve.v[low]) low = i;
    if (curve.v[i] > curve.v[high]) high = i;
  }
  std::array kept{first, low, high, last - 1};
  std::sort(kept.begin(), kept.end());
  const auto end = std::unique(kept.begin(), kept.end());
  for (auto at = kept.begin(); at != end; ++at) {
    to.t_ns.push_back(curve.t_ns[*at]);
    to.v.push_back(curve.v[*at]);
  }
}

}  // namespace

CurveStats stats_of(CurveView curve, std::int64_t end_ns) {
  CurveStats stats{.low = curve.v.front(), .high = curve.v.front(), .high_at_ns = curve.t_ns.front()};
  double area = 0;
  for (std::size_t i = 0; i < curve.size(); i++) {
    const std::int64_t until = i + 1 < curve.size() ? curve.t_ns[i + 1] : std::max(end_ns, curve.t_ns[i]);
    area += curve.v[i] * distance(curve.t_ns[i], until);
    stats.low = std::min(stats.low, curve.v[i]);
    if (curve.v[i] > stats.high) {
      stats.high = curve.v[i];
      stats.high_at_ns = curve.t_ns[i];
    }
  }
  const double whole = distance(curve.t_ns.front(), std::max(end_ns, curve.t_ns.back()));
  stats.mean = whole > 0 ? area / whole : curve.v.back();
  return stats;
}

Series thinned(std::string name, Unit unit, CurveView curve, std::size_t pieces) {
  Series series{.name = std::move(name), .unit = unit};
  if (curve.size() == 0) return series;
  const double width = std::max(1.0, distance(curve.t_ns.front(), curve.t_ns.back()) / static_cast<double>(pieces));
  std::size_t first = 0;
  const auto piece = [&](std::size_t i) {
    return static_cast<std::size_t>(distance(curve.t_ns.front(), curve.t_ns[i]) / width);
  };
  for (std::size_t i = 1; i <= curve.size(); i++) {
    if (i < curve.size() && piece(i) == piece(first)) continue;
    add_piece(series, curve, first, i);
    first = i;
  }
  return series;
}

}  // namespace stepscope
