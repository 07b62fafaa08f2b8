// The compared rows of a difference: pairs with their values, the change, and whether it is more than noise.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diff/noise.h"
#include "diff/pairs.h"

namespace stepscope::diff {

struct Row {
  Pair pair;
  Change change;             // of what is tested: see Entity::tested
  double adjusted_p = 1;     // over all rows but the step, which is tested alone
  bool significant = false;  // and more than max(1 % of the step, the noise between runs)
  bool alone = false;        // the same, were it the only row looked at
};

struct Sums {  // of a pair's entities on one side: medians over steps
  double count = 0, time = 0, self = 0, device = 0;
};

// [0] is the step. With repeats of A, the noise of a row is what its medians differ by over A and them.
std::vector<Row> compare_rows(const Side& a, const Side& b, std::vector<Pair> pairs, std::span<const Side> again);
Sums sums_of(const Side& side, const std::vector<std::uint32_t>& entities);
// "aten::add + aten::mul" of all names, without repeats.
std::string names_of(const Side& side, const std::vector<std::uint32_t>& entities, const StringPool& names);

}  // namespace stepscope::diff
