// Operators on the host beside communication: its threads take cores and memory from them.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/case.h"

namespace stepscope::diagnose {

// What an operator costs where nothing communicates beside it: between these shares of now.
struct Relieved {
  std::uint32_t node = 0;
  double least = 1, most = 1;
};

// Of the operators beside `gone`, nodes that communicate. How much slower one is beside communication is measured in
// the recording itself, by operators of the same name and sizes which have none beside them; empty where there are none
// of these to compare with, or it makes no difference.
std::vector<Relieved> relieved_of(const Case& about, const std::vector<std::uint32_t>& gone);

}  // namespace stepscope::diagnose
