// What a Change alters in the costs of a graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/change.h"
#include "simulate/comm_model.h"
#include "simulate/replay_graph.h"
#include "simulate/selection.h"

namespace stepscope::simulate {

struct Applied {
  std::uint64_t calls = 0;                  // what it was about: calls on the host, pieces of device work, transfers
  std::int64_t host_ns = 0, device_ns = 0;  // their time as recorded
  std::vector<std::string> names;
  std::vector<std::string> notes;       // what was assumed, what is not in it
  std::vector<std::int64_t> longer_ns;  // per node, or empty: what it may take beyond its cost (fused kernels)
};

// An error where the change is about nothing that was recorded, or cannot be meant.
Result<Applied> apply(const Change& change, const Run& run, const ReplayGraph& graph,
                      const std::vector<CommModel>& models, Costs& costs);

// The thread of `node` goes on there without waiting for the device. False: it did not wait.
bool wait_no_longer(const ReplayGraph& graph, std::uint32_t node, Costs& costs);

}  // namespace stepscope::simulate
