#include "costs/counts.h"

#include <algorithm>

namespace stepscope::costs {

Count window_positions(std::span<const std::int64_t> sides, const Window& window) {
  for (const auto list : {window.kernel, window.stride, window.padding, window.dilation}) {
    if (list.size() != 1 && list.size() != sides.size()) return std::nullopt;
    if (std::any_of(list.begin(), list.end(), [](std::int64_t v) { return v < 0 || v > kMost >> 30; })) return {};
  }
  const auto of = [](std::span<const std::int64_t> list, std::size_t side) {
    return list.size() == 1 ? list[0] : list[side];
  };
  Count positions = 1;
  for (std::size_t side = 0; side < sides.size(); side++) {
    const Count reach = times(of(window.dilation, side), of(window.kernel, side) - 1);
    const std::int64_t stride = of(window.stride, side);
    if (!reach || stride == 0 || sides[side] < 0 || sides[side] > kMost >> 1) return std::nullopt;
    const std::int64_t room = sides[side] + 2 * of(window.padding, side) - *reach - 1;
    if (room < 0) return std::nullopt;
    positions = times(positions, room / stride + 1);
  }
  return positions;
}

}  // namespace stepscope::costs
