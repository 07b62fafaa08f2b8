// How much of the time the counted products cover, so that a figure never looks like the whole where it is not.
//
// On a device it is the summed time of kernels that compute (communication, copies and fills have no products); without
// one the self time of operators on the host. What did not run as part of the program (compiling) is left out.
#pragma once

#include <array>
#include <vector>

#include "costs/products.h"

namespace stepscope::costs {

struct Uncounted {
  StringId name;  // of the operator; of the kernel where no operator is known
  Known why;
  std::uint64_t calls = 0;
  std::int64_t time_ns = 0;
};

struct TimeShares {
  bool device = false;
  std::array<std::int64_t, 5> time_ns{};  // by Known; nothing: work that no operator launched
  std::vector<std::int64_t> product_ns;   // time of each product
  std::vector<bool> on_tensor_cores;      // of each product: a kernel says that it takes float32 as tfloat32
  std::vector<Uncounted> uncounted;       // longest first

  std::int64_t of(Known known) const { return time_ns[static_cast<std::size_t>(known)]; }
  std::int64_t all() const {
    return of(Known::nothing) + of(Known::no_formula) + of(Known::no_shapes) + of(Known::counted);
  }
};

// Is it a kernel that computes, or one that nobody knows? No communication, copy or fill.
bool computes(const Trace& trace, std::size_t device_row);

TimeShares time_shares(const Trace& trace, const Products& products);

}  // namespace stepscope::costs
