// Calls judged by what their device can do: the least time that their work takes there, and the time beyond it.
//
// The least is the slower of two: the FLOP at the device's peak for their type, the bytes at the bandwidth of its
// memory.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "costs/work_calls.h"

namespace stepscope::analyze::roofline {

// Work and time of one call, or of several added up.
struct Judged {
  std::uint64_t calls = 0;
  std::int64_t time_ns = 0;
  std::int64_t flop = 0, bytes = 0;
  bool knows_flop = true, knows_bytes = true, knows_least = true;  // of all calls
  double compute_ns = 0, memory_ns = 0;
  double least_ns = 0, lost_ns = 0;

  void add(const Judged& one);
  // Of memory: operands came from a cache. Of compute: not all was computed, or the peak is of another device.
  bool too_fast() const { return knows_least && least_ns > static_cast<double>(time_ns); }
  // "compute", "memory", "latency", "cache"; "" where the least is not known.
  std::string_view limit(bool device) const;
};

Judged judge(const costs::WorkCall& call, std::int64_t time_ns, const costs::DevicePeaks* peaks);

struct Rank {
  costs::RankCosts costs;
  costs::WorkCalls work;
  std::vector<Judged> judged;  // of each call

  Rank(const Trace& trace, const costs::CostTables& tables);
  const costs::DevicePeaks* peaks() const { return costs.peaks.peaks; }
};

}  // namespace stepscope::analyze::roofline
