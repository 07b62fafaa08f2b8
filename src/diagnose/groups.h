// The process groups of a run: which machines their ranks are on, how much they move, and how fast.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/cause.h"

namespace stepscope::diagnose {

struct Group {
  std::string name;                   // as recorded
  std::vector<std::uint32_t> traces;  // of its ranks that were opened
  std::int64_t size = 0;              // ranks
  std::size_t machines = 0;           // of these; 0: not recorded of all
  std::vector<std::uint32_t> nodes;   // its transfers
  double bus_bytes = 0;               // that they put on the wire of each rank, all together
  // Of collectives of 64 MiB or more whose ranks were all opened, so that no wait is in them; GB/s, the median.
  std::optional<double> bus_gb_per_s;
};

// Those with recorded bytes; the ones that move most first.
const std::vector<Group>& groups(const Case& about);

}  // namespace stepscope::diagnose
