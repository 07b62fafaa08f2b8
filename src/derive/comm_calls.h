// The communication calls of one trace, each with the name of its lane and a token that the same collective has on
// every rank.
//
// A call is what one rank did for one collective: a call on the host with all kernels that it launched; kernels alone
// where the host's call is not recorded; the call alone where no device is. Kernels without metadata go by their name,
// calls of gloo, MPI and UCC (which record none) by the name of their range.
#pragma once

#include <string>
#include <vector>

#include "model/trace.h"

namespace stepscope::derive {

struct CommCall {
  MatchMember member;      // member.trace is not set
  std::uint32_t lane = 0;  // of CommCalls::lanes
  CollectiveKind kind = CollectiveKind::other;
  bool timed = true;        // false: only the call on the host is there, of a trace that has communication kernels
  bool concurrent = false;  // made by several threads of the rank at once: in any order but among calls of one token
  std::uint64_t token = 0;  // kind, type, and size where all ranks have the same
  std::int64_t sequence = kAbsent;
  std::int64_t elements = 0;
  std::int64_t bytes = Match::kUnknownBytes;
};

struct CommCalls {
  std::vector<CommLane> lanes;
  std::vector<CommCall> calls;  // by end
};

CommCalls comm_calls(const Trace& trace);

}  // namespace stepscope::derive
