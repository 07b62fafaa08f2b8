#include <algorithm>
#include <numeric>

#include "compat/hta/stats.h"

namespace stepscope::compat::hta {

std::vector<std::uint32_t> sort_order(const std::vector<double>& keys) {
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace stepscope::compat::hta
