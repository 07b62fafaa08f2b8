// Process groups as Chakra's readers want them: names of digits, the same on every rank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stepscope::write::chakra {

struct Groups {
  std::map<std::string, std::string, std::less<>> number_of;  // recorded name → digits
  std::map<std::string, std::vector<std::int64_t>> ranks_of;  // digits → ranks, where known
};

// Of all traces of a run. What has digits for a name keeps it; "" and "0" stand for all ranks.
Groups groups_of(const Run& run);

}  // namespace stepscope::write::chakra
