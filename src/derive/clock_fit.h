// How the clock of one trace leads to that of another, from the moments at which both finished the same collectives.
//
// A collective ends on all its ranks at nearly the same moment, while they arrive at it whenever they like: so ends are
// compared, and the median is taken. Calls that carry a number are paired by it. Without numbers the offset is the one
// at which most ends of the same kind and size coincide (a vote over all pairs), which does not mind lost calls; the
// pairs around it then give offset and drift.
#pragma once

#include <optional>
#include <span>

#include "model/trace.h"

namespace stepscope::derive {

struct Tick {
  std::int64_t time_ns = 0;
  std::uint64_t key = 0;  // lane and token; with `numbered` also the sequence number, then no tick has it twice
  bool numbered = false;
};

// `reference` and `other` by time. `expected_ns`: where the offset is thought to be (from step numbers or the wall
// clock); it decides between offsets that fit equally well, as those of a periodic run do, and nothing else.
std::optional<TraceClock> fit_clock(std::span<const Tick> reference, std::span<const Tick> other,
                                    std::optional<std::int64_t> expected_ns);

}  // namespace stepscope::derive
