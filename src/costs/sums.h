// Sums of products by part of the step, that never overflow whatever a file says.
#pragma once

#include <array>
#include <limits>

#include "costs/products.h"

namespace stepscope::costs {

inline std::int64_t add_up(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

struct FlopSum {
  std::array<std::int64_t, kParts> by_part{};
  std::int64_t masked = 0;
  std::uint64_t calls = 0;

  void add(const Product& product) {
    std::int64_t& part = by_part[static_cast<std::size_t>(product.part)];
    part = add_up(part, product.flop);
    masked = add_up(masked, product.masked);
    calls++;
  }
  std::int64_t of(Part part) const { return by_part[static_cast<std::size_t>(part)]; }
  // Without what ran again: what the model needs.
  std::int64_t model() const { return add_up(of(Part::forward), of(Part::backward)); }
  std::int64_t all() const { return add_up(model(), of(Part::recompute)); }
  std::int64_t causal() const { return all() - masked; }
};

}  // namespace stepscope::costs
