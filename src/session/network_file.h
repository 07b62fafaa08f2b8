// The network of a machine from a file: ASTRA-sim's network.yml, whose lists of a dimension each are also JSON.
//
//   topology: [Ring, Switch]     # or FullyConnected; the inner dimension first
//   npus_count: [8, 16]          # 8 ranks in a machine, 16 machines
//   bandwidth: [300.0, 25.0]     # GB/s of a rank, in one direction
//   latency: [500.0, 5000.0]     # ns of a hop
#pragma once

#include <string>

#include "base/result.h"
#include "model/network.h"

namespace stepscope::session {

Result<Network> read_network(const std::string& path);

}  // namespace stepscope::session
