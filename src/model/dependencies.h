// What each piece of work had to wait for, as far as the recording shows it: the edges of the dependency graph that
// are not already in the trace. The critical path walks them backwards; a simulation can run them forwards.
//
//   device work ← its launch call           Trace::device.launch
//   device work ← the work before it        stream_before: streams run in order
//   device work ← an event of a stream      event_before: a recorded "Stream Wait Event"
//   a host call ← device work               released: a synchronizing call, or a copy that its call waited for
//   a host thread ← another host thread     feeder: a thread that ran the backward ops of that one's forward ops
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stepscope {

// How the recording shows that something waited for something else.
enum class WaitEvidence : std::uint8_t {
  program_order,  // the same thread did this before
  launch,         // the call that launched the work
  stream_order,   // the work before it on its stream
  event_wait,     // its stream waited for an event of another stream
  end_to_start,   // inferred: it was queued, and started right after work of another stream had ended
  sync_call,      // the host sat in a synchronizing call until this work had ended
  polled,         // inferred: the host did nothing after launching the work, and went on when it ended
  autograd,       // a thread that runs backward ops and the thread that ran their forward ops take turns
  none,           // nothing in the recording shows it
  // what only a simulation of all ranks looks at
  launch_queue,  // the host sat in a launch call while as many launches were pending as the queue holds
  worker,        // a thread that communicates took its work from this one, or this one waited for it
  collective,    // a collective begins when its last rank arrives
  occupied,      // inferred: work of other streams filled the device all the while
};
inline constexpr std::size_t kWaitEvidences = 13;
inline constexpr std::size_t kPathEvidences = 9;  // those that a critical path of one rank can have
std::string_view to_string(WaitEvidence evidence);
std::string_view meaning_of(WaitEvidence evidence);

struct Released {
  SliceId call = SliceId::none;
  std::uint32_t row = 0;  // of Trace::device: when this ended, the call could return
};

struct Dependencies {
  static constexpr std::uint32_t none = 0xffffffff;

  std::vector<std::uint32_t> by_start, by_end;             // rows of Trace::device that are work
  std::vector<std::uint32_t> stream_before, event_before;  // per row of Trace::device: a row, or none
  std::vector<Released> released;                          // by call
  std::vector<TrackId> feeder;                             // per track: whose backward ops it ran, or none
  std::vector<std::vector<std::uint32_t>> launched;        // per track: the work that this thread launched, by call
  std::int64_t launch_latency_ns = 0;                      // see usual_launch_latency

  std::uint32_t released_by(SliceId call) const;  // row, or none
};

Dependencies dependencies(const Trace& trace);

// How long a launch into an idle device may take and still be usual: half more than the median from the start of the
// call to the start of the work, measured on these rows (work by start); the usual of current devices without five
// such launches.
std::int64_t usual_launch_latency(const Trace& trace, std::span<const std::uint32_t> rows);

}  // namespace stepscope
