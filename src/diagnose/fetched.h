// What a function of the program fetches from the device to work on it on the host: the copies, and the waits for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "diagnose/cause.h"

namespace stepscope::diagnose {

struct Fetched {
  std::int64_t bytes = 0;                // of the rank whose steps they are; 0: it fetches nothing
  std::vector<std::uint32_t> nodes;      // the copies, and the calls that ask for them
  std::vector<std::uint32_t> waits;      // of threads
  std::vector<std::uint32_t> late = {};  // what is late for these waits
};

// More than a few numbers, right before one of these stretches of code of the function.
Fetched fetched_by(const Case& about, const Function& function, std::span<const std::uint32_t> stretches);

}  // namespace stepscope::diagnose
