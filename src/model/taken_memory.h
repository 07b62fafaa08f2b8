// Memory of the host that operators take from the system, as the recording has it.
#pragma once

#include <cstdint>
#include <map>

#include "model/trace.h"

namespace stepscope {

// Less is cut from what the process has.
inline constexpr std::int64_t kFromSystemBytes = 128 << 10;

// The outermost operator around a slice, itself included; none: there is none. A collection of garbage is none.
SliceId outermost_operator(const Trace& trace, SliceId inside);

// Bytes in pieces of that size or more, per outermost operator.
std::map<SliceId, double> taken_from_system(const Trace& trace);

}  // namespace stepscope
