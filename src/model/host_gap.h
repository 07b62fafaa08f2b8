// What a host thread did in an interval of time: which operator took most of it, whether it sat in a synchronizing call
// or in the data loader, and in which Python function.
//
// Made for many ascending intervals of one trace: a cursor per track moves forward only, so that all look-ups together
// walk each slice about once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/intervals.h"
#include "model/trace.h"

namespace stepscope {

struct HostActivity {
  bool anything = false;          // some slice of the thread overlaps the interval
  bool in_sync_at_start = false;  // a synchronizing call was running when the interval began
  std::int64_t sync_ns = 0;
  std::int64_t dataloader_ns = 0;
  SliceId op = SliceId::none;  // outermost operator with the largest part of the interval
  std::int64_t op_ns = 0;
  SliceId sync_call = SliceId::none;
  SliceId function = SliceId::none;   // innermost Python frame that encloses the whole interval
  SliceId innermost = SliceId::none;  // innermost slice at the start
};

class HostTimeline {
 public:
  explicit HostTimeline(const Trace& trace);
  // Intervals on one track should come by ascending start; others are answered as well, only slower.
  HostActivity during(TrackId track, Interval when);

 private:
  std::uint32_t last_before(TrackId track, std::int64_t time);
  void look_at_enclosing(SliceId id, Interval when, HostActivity& found, std::int64_t& op_until) const;

  const Trace& trace_;
  std::vector<std::uint32_t> cursor_;  // per track: index into by_track
  std::vector<std::uint8_t> marks_;    // per name: is it a synchronizing call, is it the data loader
};

}  // namespace stepscope
