// How long collectives of one kind and group take for their bytes: latency + bytes / bandwidth, fitted on those that
// the run itself recorded. Unknown bytes take no part in the fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/replay_graph.h"

namespace stepscope::simulate {

struct CommModel {
  CollectiveKind kind = CollectiveKind::other;
  std::int64_t group_size = 0;       // 0: not recorded
  std::vector<std::uint32_t> nodes;  // the transfers
  std::vector<std::int64_t> bytes;   // per node; Match::kUnknownBytes
  std::int64_t sizes = 0;            // distinct numbers of bytes
  bool parted = false;  // sizes are far enough from each other that latency and bandwidth can be told apart
  double latency_ns = 0;
  std::optional<double> ns_per_byte;  // unknown: no bytes are recorded
  std::optional<double> residual;     // median of |fitted / recorded - 1|
  bool met = false;                   // all ranks were opened: without, a transfer holds the wait for the others
};

// What is longer is refused: 30 years, so that sums of times fit their type.
inline constexpr double kMostNs = 1e18;

std::vector<CommModel> comm_models(const Run& run, const ReplayGraph& graph);

// What a transfer of `cost_ns` takes when the part of it that grows with its bytes takes `bytes_factor` times, and its
// latency `latency_factor` times as long. Everything counts as the former where they cannot be told apart.
std::int64_t scaled_transfer(const CommModel& model, std::int64_t cost_ns, double bytes_factor, double latency_factor);

}  // namespace stepscope::simulate
