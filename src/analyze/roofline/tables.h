// The tables of the answer roofline, most time lost first.
#pragma once

#include <vector>

#include "analyze/roofline/judged.h"
#include "model/answer.h"

namespace stepscope::analyze::roofline {

Table families_table(const std::vector<Rank>& ranks);
Table ops_table(const std::vector<Rank>& ranks);
Table kernels_table(const std::vector<Rank>& ranks);
Table unmodelled_table(const std::vector<Rank>& ranks);
Table devices_table(const std::vector<Rank>& ranks);

}  // namespace stepscope::analyze::roofline
