// Sums of bytes and addresses from a file that may say anything: they stop at the largest number and never wrap.
#pragma once

#include <cstdint>
#include <limits>

namespace stepscope::snapshot {

inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

// `bytes` is not negative.
inline std::uint64_t behind(std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  return end < address ? std::numeric_limits<std::uint64_t>::max() : end;
}

// Bytes from `low` to `high`; 0 where `high` lies below.
inline std::int64_t between(std::uint64_t low, std::uint64_t high) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return high <= low ? 0 : static_cast<std::int64_t>(high - low < kMost ? high - low : kMost);
}

}  // namespace stepscope::snapshot
