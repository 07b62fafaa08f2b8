// Every call of an operator with its self time, the time of the device work it launched, and the bytes it allocated;
// and the totals of any grouping of these calls.
//
// Input: a derived trace of up to some 10^6 operator calls; everything is a flat array in the order of Trace::by_track,
// where a caller comes before what it calls. Self = duration − union of the direct children, whatever they are. Device
// time = union of the kernels (several streams at once count once). In the total of a group a call inside another call
// of the same group counts once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/string_pool.h"
#include "model/trace.h"

namespace stepscope {

struct OpCalls {
  static constexpr std::uint32_t none = 0xffffffff;

  std::vector<SliceId> slice;         // the calls
  std::vector<std::uint32_t> parent;  // the call around this one, or none
  std::vector<std::uint32_t> row;     // its row of Trace::ops, or none
  std::vector<std::int64_t> host_self_ns;
  std::vector<std::int64_t> device_self_ns, device_total_ns;
  std::vector<std::int64_t> self_bytes, total_bytes;  // empty: the trace has no memory events
  std::vector<std::uint32_t> op_at;                   // per slice: the innermost call at or above it, or none
  std::uint64_t bytes_without_op = 0;                 // allocated while no operator ran on the thread

  std::size_t size() const { return slice.size(); }
};

OpCalls op_calls(const Trace& trace);

struct OpTotal {
  std::uint64_t key = 0;                  // as given by the grouping
  std::uint32_t example = OpCalls::none;  // the first call of the group
  std::uint64_t calls = 0;
  std::int64_t host_self_ns = 0, host_total_ns = 0;
  std::int64_t device_self_ns = 0, device_total_ns = 0;
  std::int64_t self_bytes = 0, total_bytes = 0;
};

// One key per call; calls of equal key form a group. By name: the name's id.
std::vector<OpTotal> op_totals(const Trace& trace, const OpCalls& calls, const std::vector<std::uint64_t>& keys);
std::vector<std::uint64_t> keys_by_name(const Trace& trace, const OpCalls& calls);

// Heaviest first: by device self time where there is any, then by host self time, then by first use.
void sort_by_self(std::vector<OpTotal>& totals);

}  // namespace stepscope
