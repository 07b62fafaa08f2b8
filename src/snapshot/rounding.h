// How torch's caching allocator turns the size that a program asks for into a block, by the settings of a snapshot
// (c10/cuda/CUDACachingAllocator.cpp: round_size, should_split).
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "model/cuda_snapshot.h"

namespace stepscope::snapshot {

inline constexpr std::int64_t kLeastBlock = 512;
inline constexpr std::int64_t kMostSmall = 1 << 20;  // larger blocks are of the pool of large ones

class Rounding {
 public:
  explicit Rounding(const CudaSnapshot& snapshot);

  // What is taken for `bytes` at least.
  std::int64_t rounded(std::int64_t bytes) const;
  // Of a free block of `available` bytes that is given for `wanted` (rounded): all of it, or just what is wanted.
  std::int64_t taken(std::int64_t wanted, std::int64_t available) const;

 private:
  std::array<std::int64_t, 16> divisions_{};  // of powers of two from 1 MiB on; 0: none
  std::int64_t most_split_ = std::numeric_limits<std::int64_t>::max();
  bool expandable_ = false;
};

}  // namespace stepscope::snapshot
