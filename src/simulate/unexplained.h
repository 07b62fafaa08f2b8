// The honest measure of a graph: the time that its lanes wait, in the steps, for nothing that the recording shows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulate/play.h"

namespace stepscope::simulate {

struct LaneWaits {
  std::uint32_t lane = 0;
  std::uint64_t nodes = 0;     // that begin in the steps
  std::int64_t window_ns = 0;  // length of the steps of its rank
  std::int64_t busy_ns = 0;
  std::int64_t unexplained_ns = 0, longest_ns = 0;
};

// Of every lane with nodes in the steps of its rank.
std::vector<LaneWaits> unexplained_waits(const ReplayGraph& graph, const std::vector<StepWindow>& windows);

// Unexplained waits of all lanes of a rank over its steps, the mean of the ranks; unknown where no lane waits.
std::optional<double> unexplained_share(const ReplayGraph& graph, const std::vector<LaneWaits>& lanes);

}  // namespace stepscope::simulate
