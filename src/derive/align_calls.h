// Which calls of one lane are the same collective, where no number says so.
//
// Traces join one after the other: each is aligned, in order, with the calls known so far, and brings in what it alone
// has. A pair must have the same token; where both clocks are known it gains the more the closer its ends are, with a
// heavy tail (as Student's t has), since some collectives end late on one rank. So a lost record leaves a hole instead
// of shifting everything behind it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepscope::derive {

struct LaneCall {
  std::int64_t start_ns = 0, end_ns = 0;  // on the run's clock
  std::uint64_t token = 0;
  std::uint32_t trace = 0;
  std::uint32_t call = 0;     // the caller's number of it
  bool must_overlap = false;  // no rank can end it before the last has begun
};

struct Alignment {
  double spread_ns = 0;       // of the ends of one collective; 0: clocks are not known, order alone counts
  double clock_error_ns = 0;  // by so much one may seem to end before the last has begun
};

// `by_trace`: the calls of each trace in the order that all traces share. Returns for each collective its calls.
std::vector<std::vector<LaneCall>> align_calls(std::vector<std::span<const LaneCall>> by_trace, Alignment how);

}  // namespace stepscope::derive
