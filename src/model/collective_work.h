// Communication on the device, told apart by collective: which call each communication kernel belongs to, how many
// bytes it moves and how bandwidth is counted.
//
// Bytes follow the convention of NCCL's tests: the size of the full buffer (all-gather: what is gathered,
// reduce-scatter: what is scattered). Bus bandwidth = algorithm bandwidth × bus_factor.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/trace.h"

namespace stepscope {

std::string_view to_string(CollectiveKind kind);
CollectiveKind collective_kind(
    std::string_view recorded);  // "allreduce", "_allgather_base", "ncclDevKernel_AllReduce…"

// Bytes of one call; unknown when the trace lacks its elements, type or group size.
std::optional<std::int64_t> collective_bytes(const Trace& trace, std::uint32_t collective);
// Bytes of the largest tensor that an operator was given, from the texts that the profiler wrote: of what is gathered
// or scattered there are the parts and the whole. Unknown where a tensor is not understood, or there is none.
std::optional<std::int64_t> largest_input_bytes(std::string_view dims, std::string_view types);
// Bus over algorithm bandwidth for a group of n; unknown where the convention has no factor.
std::optional<double> bus_factor(CollectiveKind kind, std::int64_t n);

inline constexpr std::uint32_t kNoCollective = MatchMember::kNone;
// The row of Trace::collectives on the slice itself or around the launch of device row `row`.
std::uint32_t collective_of(const Trace& trace, std::uint32_t row);
// The row around the launch alone: the call on the host.
std::uint32_t host_collective_of(const Trace& trace, std::uint32_t row);

}  // namespace stepscope
