// How long products of matrices would take if each did its FLOP, or moved its bytes, as fast as the fastest one of the
// same rank and element type did.
#pragma once

#include <optional>
#include <unordered_map>

#include "diagnose/case.h"

namespace stepscope::diagnose {

class FastestProducts {
 public:
  explicit FastestProducts(const Case& about);

  // 0 to 1: what would be left of its time; nullopt: it is no work on the host within a product whose sizes are known.
  std::optional<double> of_product(const Work& work) const;

 private:
  std::unordered_map<const Trace*, std::unordered_map<SliceId, double>> left_;
};

}  // namespace stepscope::diagnose
