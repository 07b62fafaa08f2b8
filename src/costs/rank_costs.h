// What is known of the arithmetic of one rank: its products, the time they took, and the peaks of its device.
#pragma once

#include <string_view>
#include <vector>

#include "costs/ideal.h"
#include "costs/time_shares.h"
#include "model/answer_parts.h"

namespace stepscope::costs {

struct RankCosts {
  const Trace* trace;
  Products products;
  TimeShares time;
  TraceInputs inputs;
  std::vector<std::string_view> types;  // of the elements of each product
  RankPeaks peaks;
  FlopSum sum;

  RankCosts(const Trace& of, const CostTables& tables);
  std::int64_t rank() const { return trace->rank.rank; }
  // Unknown where of some attention it was not recorded whether its mask is causal.
  Value causal(std::int64_t flop) const { return value_if(products.masks_known, flop); }
};

std::string_view to_string(Part part);

// FLOP over ns; unknown where no time was measured.
Value per_second(std::int64_t flop, std::int64_t time_ns);

}  // namespace stepscope::costs
