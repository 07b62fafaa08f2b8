// Checksum: a fast 64-bit hash of bytes against accidental damage (not against an attacker). The value depends on the
// bytes alone, not on how they were split over add() calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stepscope {

class Checksum {
 public:
  explicit Checksum(std::uint64_t seed) {
    for (std::size_t i = 0; i < 4; i++) lane_[i] = seed + kPrime * (i + 1);
  }

  void add(const void* data, std::size_t size) {
    const char* from = static_cast<const char*>(data);
    total_ += size;
    if (held_ > 0) {
      while (held_ < sizeof block_ && size > 0) {
        block_[held_++] = *from++;
        size--;
      }
      if (held_ < sizeof block_) return;
      mix(block_);
      held_ = 0;
    }
    for (; size >= sizeof block_; from += sizeof block_, size -= sizeof block_) mix(from);
    if (size > 0) std::memcpy(block_, from, size);
    held_ = size;
  }

  std::uint64_t value() const {
    Checksum last = *this;
    std::memset(last.block_ + held_, 0, sizeof block_ - held_);
    last.mix(last.block_);
    std::uint64_t h = total_;
    for (const std::uint64_t lane : last.lane_) h = fold(h ^ lane, kPrime);
    return h;
  }

 private:
  static constexpr std::uint64_t kPrime = 0x9E3779B97F4A7C15ull;
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const __uint128_t product = static_cast<__uint128_t>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  // Four independent lanes keep the multipliers busy.
  void mix(const char* block) {
    for (std::size_t i = 0; i < 4; i++) {
      std::uint64_t word;
      std::memcpy(&word, block + 8 * i, 8);
      lane_[i] = fold(lane_[i] ^ word, kPrime + 2 * i);
    }
  }

  std::uint64_t lane_[4];
  std::uint64_t total_ = 0;
  std::size_t held_ = 0;
  char block_[32];
};

}  // namespace stepscope
