// Durations grouped by name, as both HTA's kernel and its annotation breakdown list them.
//
// Above `most` names the small ones become "others": those beyond the quantile `ratio` of the running sum (not: those
// beyond that share of the time), and those from place `most` on. HTA then takes the statistics over the *sums* of what
// shares a name, so that every name left has max = min = mean = sum and deviation 0. That is reproduced.
#pragma once

#include <string>
#include <vector>

#include "compat/hta/table.h"

namespace stepscope::compat::hta {

struct NameGroup {
  std::string name;
  double sum = 0, max = 0, min = 0, std = 0, mean = 0;
};
std::vector<NameGroup> by_name(const EventTable& table, const std::vector<Row>& rows, std::size_t most, double ratio);

}  // namespace stepscope::compat::hta
