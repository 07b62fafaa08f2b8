// What grows: by stack, from one moment to a later one, and whether it does at each moment in between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/allocator_history.h"

namespace stepscope::snapshot {

struct GrowthMoments {
  std::vector<std::uint32_t> moments;  // ascending, two or more; empty: the trace is too short
  std::string source;                  // sentence: what they are
  bool are_steps = false;
};

// The ends of the steps, without the first one, in which states and buffers are made; without steps equal parts of the
// events. Of one step none.
GrowthMoments growth_moments(const SnapshotDevice& device);

struct StackGrowth {
  StackId stack = StackId::none;
  std::uint16_t of_class = 0;       // of most of its bytes at the last moment
  std::vector<std::int64_t> bytes;  // that live at each moment
  std::uint64_t first_blocks = 0, last_blocks = 0;

  std::int64_t growth() const { return bytes.back() - bytes.front(); }
  // More at most moments than at the one before, and never less.
  bool steady() const;
};

// By growth, the largest first. Stacks of which nothing lives at the first and last moment are left out.
std::vector<StackGrowth> growth_by_stack(const AllocatorHistory& history, const SnapshotDevice& device,
                                         const std::vector<std::uint32_t>& moments);

}  // namespace stepscope::snapshot
