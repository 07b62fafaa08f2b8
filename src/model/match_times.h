// What a matched collective cost: transfer against wait, and who came late.
//
// All ranks of a synchronizing collective leave it together, so its transfer is what it took on the rank that came
// last, the shortest of its durations, and every other rank waited for the rest of its own: no clock is compared.
// Where the ranks may leave at different moments (broadcast, reduce, send, gather, scatter) the transfer is from the
// last arrival to the last end on the run's clock.
#pragma once

#include <optional>

#include "model/trace.h"

namespace stepscope {

// Nobody can leave these before everybody has come.
bool synchronizes(CollectiveKind kind);

// All ranks of its group are members; unknown group sizes are never complete.
bool is_complete(const Run& run, std::size_t match);

struct MatchTime {
  std::int64_t transfer_ns = 0;      // an upper bound where the match is not complete
  std::int64_t last_arrival_ns = 0;  // on the run's clock
  std::int64_t wait_ns = 0;          // summed over its members
};
MatchTime match_time(const Run& run, std::size_t match);

// The run's clock for this trace is as good as the ends of collectives or the clock of one host, or it is the reference
// itself.
bool clock_is_fitted(const Trace& trace);
// Two moments on different ranks closer than this cannot be told apart; nothing when some clock is not fitted.
std::optional<std::int64_t> clock_bound_ns(const Run& run);

}  // namespace stepscope
