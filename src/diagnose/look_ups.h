// Operators of the forward pass that look up rows of a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "diagnose/case.h"
#include "diagnose/inputs.h"

namespace stepscope::diagnose {

struct LookUp {
  std::size_t at = 0;  // in forward_operators
  Sizes table;         // that has the rows
  std::int64_t rows = 0;
  bool by_mask = false;            // where a mask is true, whose indices are not known yet
  std::vector<SliceId> back = {};  // that adds the rows up again: of tensor[indices] alone
  std::int64_t width() const { return elements(Sizes(table.begin() + 1, table.end())); }  // numbers in a row
};

// Those of which it is known how many rows they look up; of tensor[indices] the backward pass says it.
const std::vector<LookUp>& look_ups(const Case& about);

}  // namespace stepscope::diagnose
