// Interned: rows of which each distinct one is kept once and has a number, in order of first use.
//
// Expected workload: 10^7 look-ups of 10^2 to 10^5 distinct rows. Open addressing, at most half full.
#pragma once

#include <cstdint>
#include <vector>

#include "base/column.h"

namespace stepscope::read::cuda {

constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  const __uint128_t product = static_cast<__uint128_t>(hash ^ 0xa0761d6478bd642full) * (value ^ 0xe7037ed1a0b428dbull);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Only the numbers; the rows lie where the caller wants them.
class RowNumbers {
 public:
  // The number of the row with this hash for which same(number) holds. A new row gets the next number, and the caller
  // must then add it: `is_new`.
  template <class Same>
  std::uint32_t find(std::uint64_t hash, bool& is_new, const Same& same) {
    if (std::size_t{count_} * 2 >= slots_.size()) grow();
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = tag & (slots_.size() - 1);
    for (; slots_[at].number != kFree; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].tag == tag && same(slots_[at].number)) return slots_[at].number;
    }
    is_new = true;
    slots_[at] = {tag, count_};
    return count_++;
  }
  std::size_t bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;
  struct Slot {
    std::uint32_t tag = 0, number = kFree;
  };

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kFree) continue;
      std::size_t at = slot.tag & (slots_.size() - 1);
      while (slots_[at].number != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::uint32_t count_ = 0;
};

// Rows of a column; `hash` is the caller's.
template <class Row>
std::uint32_t intern(RowNumbers& numbers, Column<Row>& rows, std::uint64_t hash, const Row& row) {
  bool is_new = false;
  const std::uint32_t number = numbers.find(hash, is_new, [&](std::uint32_t other) { return rows[other] == row; });
  if (is_new) rows.push_back(row);
  return number;
}

}  // namespace stepscope::read::cuda
