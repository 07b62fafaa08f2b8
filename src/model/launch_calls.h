// Every call that launches device work, with what it launched: how long it took on the host, how long its work ran, and
// how long the work waited.
//
// A graph launch is one call with much work; a call whose work is not in the recording has none. Input: up to some 10^6
// calls; flat arrays, in file order.
#pragma once

#include <cstdint>
#include <vector>

#include "model/host_names.h"
#include "model/trace.h"

namespace stepscope {

struct LaunchCall {
  static constexpr std::uint32_t none = 0xffffffff;

  SliceId slice = SliceId::none;
  LaunchKind kind = LaunchKind::none;
  std::uint32_t work = 0;          // pieces of device work
  std::uint32_t first_row = none;  // its earliest work, a row of Trace::device
  std::int64_t device_ns = 0;      // union of its work
  std::int64_t delay_ns = 0;       // from the end of the call to the start of its first work; 0 if that was earlier
  std::int64_t idle_delay_ns = 0;  // part of the delay in which no earlier work ran on the stream of the first work
};

// `work`: rows of Trace::device by start, as work_by_start gives them.
std::vector<LaunchCall> launch_calls(const Trace& trace, const std::vector<std::uint32_t>& work);

}  // namespace stepscope
