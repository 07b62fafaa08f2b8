#include "costs/rank_costs.h"

namespace stepscope::costs {

RankCosts::RankCosts(const Trace& of, const CostTables& tables)
    : trace(&of),
      products(products_of(of, tables)),
      time(time_shares(of, products)),
      inputs(of),
      peaks(rank_peaks(of, tables.peaks)) {
  for (std::size_t i = 0; i < products.all.size(); i++) {
    const Product& product = products.all[i];
    sum.add(product);
    const bool recorded = product.row != Product::no_row;
    const std::string_view type = recorded ? inputs.type(product.row, product.operand) : product.said_type;
    types.push_back(type == "float32" && time.on_tensor_cores[i] ? "tfloat32" : type);
  }
}

std::string_view to_string(Part part) {
  static constexpr std::array<std::string_view, kParts> names{"forward", "backward", "recompute"};
  return names[static_cast<std::size_t>(part)];
}

Value per_second(std::int64_t flop, std::int64_t time_ns) {
  return time_ns > 0 ? Value(static_cast<double>(flop) * 1e9 / static_cast<double>(time_ns)) : Value();
}

}  // namespace stepscope::costs
