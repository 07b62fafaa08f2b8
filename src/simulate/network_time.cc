#include "simulate/network_time.h"

#include <algorithm>

#include "model/collective_work.h"

namespace stepscope::simulate {

std::int64_t places(const Network& network) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  std::int64_t ranks = 1;
  for (const NetworkDimension& dimension : network.dimensions) ranks = std::min(ranks * dimension.ranks, kMost);
  return ranks;
}

NetworkTime network_time(const Network& network, CollectiveKind kind, std::int64_t ranks) {
  const bool twice = kind == CollectiveKind::all_reduce;  // reduces, then gathers
  const bool shrinks = twice || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  NetworkTime time;
  double share = 1;
  for (const NetworkDimension& dimension : network.dimensions) {
    const std::int64_t here = std::min(dimension.ranks, ranks);
    if (here < 2) continue;
    const double hops = dimension.shape == NetworkShape::ring ? static_cast<double>(here - 1) : 1;
    time.latency_ns += dimension.latency_ns * hops * (twice ? 2 : 1);
    time.ns_per_byte += share * bus_factor(kind, here).value_or(1) / dimension.bytes_per_ns;
    if (shrinks) share /= static_cast<double>(here);
    ranks = (ranks + here - 1) / here;
  }
  return time;
}

}  // namespace stepscope::simulate
