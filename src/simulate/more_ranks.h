// More data-parallel ranks than were recorded: clones of those, which take their steps as long as recorded steps took.
//
// Each clone follows one recorded rank and draws, for each of its steps, one that this rank recorded: what its threads
// and its device then did in it takes as long in relation. All are played together, coupled where collectives meet, and
// what the last of them adds to each meeting is the mean of some draws.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/replay_graph.h"

namespace stepscope::simulate {

struct MoreRanks {
  std::vector<std::int64_t>
      late_ns;  // per node: of a meeting, how much later than the last recorded rank the last comes
  std::int64_t late_per_step_ns = 0;  // over the meetings of a step, of the rank with most of it
  std::int64_t steps = 0;             // recorded ones that were drawn from; 0: ranks do not meet, or none is whole
  std::int64_t ranks = 0;             // played; fewer than asked for where the graph is large
};

// `costs`: what the recorded ranks cost with the changes so far.
MoreRanks more_ranks(const Run& run, const ReplayGraph& graph, const Costs& costs, std::int64_t ranks);

}  // namespace stepscope::simulate
