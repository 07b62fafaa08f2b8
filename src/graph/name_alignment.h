// Which operators of one thread, told twice, are the same: by their autograd sequence numbers and the order of names.
//
// Workload: one thread of an execution trace (up to some 10^5 calls) and one of a timeline, which may have recorded
// many times as much. Names are numbers that both sides share; a sequence number is kAbsent where a call has none.
// Unique pairs (name, sequence number) that both sides have are anchors; between them the longest common run of names
// decides (Myers, O(ND), with a limit on the differences, so that two unlike threads cost little and match nothing).
// Without anchors a timeline of more than twice as many calls matches nothing: the part may be any of its steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepscope::graph {

struct Called {
  std::uint32_t name = 0;
  std::int64_t sequence = 0;
};

struct CalledPair {
  std::uint32_t part = 0, whole = 0;  // positions
  bool by_sequence = false;           // both have the same sequence number, and it says which of many it is
};

// `part` and `whole` in the order in which they were called. The pairs ascend on both sides.
std::vector<CalledPair> align_names(std::span<const Called> part, std::span<const Called> whole);

}  // namespace stepscope::graph
