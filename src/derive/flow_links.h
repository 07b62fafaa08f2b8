// Arrows (flow events) bound to slices, and the launch links that only they give.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/trace.h"

namespace stepscope::derive {

struct Arrow {
  SliceId from = SliceId::none;  // innermost slice open where the arrow starts
  std::size_t end = 0;           // row of its 'f' end in Trace::flows
};

// Every wanted 'f' end whose 's' end lies in a slice. Ends belong together by category and id; of several starts the
// last one not after the end is taken, else the first. O(wanted ends * log).
std::vector<Arrow> arrows(const Trace& trace, const std::function<bool(std::size_t flow)>& wanted);

// Sets device.launch of unlinked work to the host slice its arrow comes from; returns how many pieces it linked.
std::uint64_t link_by_flows(Trace& trace);

}  // namespace stepscope::derive
