// Counts that come from sizes in a file: unknown as soon as a part is, or where nothing real is so large.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "costs/inputs.h"

namespace stepscope::costs {

using Count = std::optional<std::int64_t>;

// More than a device does in a day: sizes that nothing real has.
inline constexpr std::int64_t kMost = std::int64_t{1} << 60;

inline Count times(Count a, Count b) {
  std::int64_t product = 0;
  if (!a || !b || *a < 0 || *b < 0 || __builtin_mul_overflow(*a, *b, &product) || product > kMost) return std::nullopt;
  return product;
}

inline Count plus(Count a, Count b) { return a && b && *a <= kMost - *b ? Count(*a + *b) : std::nullopt; }

inline Count product(std::span<const std::int64_t> sizes) {
  Count all = 1;
  for (const std::int64_t size : sizes) all = times(all, size);
  return all;
}

// The size `from_end` places before the last.
inline Count last(const Sizes& sizes, std::size_t from_end = 0) {
  return from_end < sizes.size() ? Count(sizes[sizes.size() - 1 - from_end]) : std::nullopt;
}

// A window that slides over sides: of a convolution, of pooling. Each list holds one value for each side, or one for
// all.
struct Window {
  std::span<const std::int64_t> kernel, stride, padding, dilation;
};

// The places that it comes to, over all sides; unknown where it fits nowhere or makes no sense.
Count window_positions(std::span<const std::int64_t> sides, const Window& window);

}  // namespace stepscope::costs
