// Gaps of a device (no stream has work) and why each is there.
//
// Each gap has one cause, judged by the work that ends it and by what the thread that launched this work did meanwhile:
//   synchronization     the thread sat in a synchronizing call when the gap began, and launched only after it
//   data wait           the thread spent most of the gap in the data loader
//   host-bound          the launch call began after the gap had begun, and the thread was running something else
//   launch-bound        the call began before the gap, but too late to hide the time from call to start
//   dependency          the work was queued and waited for an event, another stream, or the work before it
//   communication wait  the same, and what it waited for was communication
//   unknown             none of these can be shown
// The usual time from call to start is measured on the trace itself, on launches into an idle device.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/windows.h"

namespace stepscope {

enum class IdleCause : std::uint8_t {
  host_bound,
  launch_bound,
  dependency,
  communication_wait,
  data_wait,
  synchronization,
  unknown,
};
inline constexpr std::size_t kIdleCauses = 7;
std::string_view to_string(IdleCause cause);
std::string_view meaning_of(IdleCause cause);

struct IdleGap {
  static constexpr std::uint32_t none = 0xffffffff;

  Interval when;
  IdleCause cause = IdleCause::unknown;
  std::uint32_t before = none, after = none;  // rows of Trace::device that end and start the gap
  SliceId host_op = SliceId::none;            // the operator or call that took most of the gap on the launching thread
  SliceId function = SliceId::none;           // the innermost Python frame around that time
  Phase phase = Phase::other;            // of the host, where a host cause was found, else of the work that follows
  std::int64_t waited_stream = kAbsent;  // dependency: on which stream, where known
  std::string_view why;                  // which evidence decided
};

// Gaps inside the span, by start; then, where the steps window begins before or ends after the span, its edges.
std::vector<IdleGap> idle_gaps(const Trace& trace, const DeviceTime& device);

}  // namespace stepscope
