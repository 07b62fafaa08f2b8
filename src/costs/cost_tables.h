// All tables that costs are found by: what is built in, behind what the user of the run gave.
#pragma once

#include <vector>

#include "base/result.h"
#include "costs/peaks.h"
#include "costs/rules.h"

namespace stepscope {
struct Run;
}

namespace stepscope::costs {

struct CostTables {
  std::vector<DevicePeaks> peaks;
  FlopRules own;      // the user's: they win over the formulas of torch's operators
  FlopRules shipped;  // for libraries
};

// An error names the file and the line of the user's table.
Result<CostTables> cost_tables(const Run& run);

}  // namespace stepscope::costs
