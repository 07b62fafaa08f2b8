// How long a collective takes on a network, as rings or exchanges in every dimension, one after the other: what it
// moves outside gets smaller by what was reduced inside. Hierarchical, as NCCL's trees and ASTRA-sim's analytical
// backend see it.
#pragma once

#include <cstdint>
#include <span>

#include "model/matches.h"
#include "model/network.h"

namespace stepscope::simulate {

struct NetworkTime {
  double latency_ns = 0;   // whatever its size
  double ns_per_byte = 0;  // of its bytes, by the convention of collective_bytes
};

// Ranks that the network has place for.
std::int64_t places(const Network& network);

// `ranks` fill the inner dimensions first.
NetworkTime network_time(const Network& network, CollectiveKind kind, std::int64_t ranks);

}  // namespace stepscope::simulate
