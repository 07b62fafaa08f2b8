// KeyIndex: 64-bit keys to dense indexes 0, 1, 2 … in order of first use; the flat map under every group-by.
//
// Expected workload: 10^6 to 10^7 look-ups of 10 to 10^5 distinct keys, mostly two packed 32-bit ids. Open addressing,
// at most half full.
#pragma once

#include <cstdint>
#include <vector>

namespace stepscope {

class KeyIndex {
 public:
  std::uint32_t operator[](std::uint64_t key) {
    if (keys_.size() * 2 >= slots_.size()) grow();
    std::size_t at = mix(key) & (slots_.size() - 1);
    while (slots_[at] != kFree) {
      if (keys_[slots_[at]] == key) return slots_[at];
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = static_cast<std::uint32_t>(keys_.size());
    keys_.push_back(key);
    return slots_[at];
  }
  std::size_t size() const { return keys_.size(); }
  std::uint64_t key(std::uint32_t index) const { return keys_[index]; }

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;

  static std::size_t mix(std::uint64_t key) {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(key ^ (key >> 29));
  }
  void grow() {
    slots_.assign(slots_.empty() ? 64 : slots_.size() * 2, kFree);
    for (std::uint32_t i = 0; i < keys_.size(); i++) {
      std::size_t at = mix(keys_[i]) & (slots_.size() - 1);
      while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }

  std::vector<std::uint64_t> keys_;
  std::vector<std::uint32_t> slots_;
};

}  // namespace stepscope
