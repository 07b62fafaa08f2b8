// The critical path of a window: what the end of the window waited for, walked backwards to its start.
//
// At every instant exactly one thing is on the path, so the classes add up to the window's length to the nanosecond.
// The walk starts at what finished last. Device work is followed to what made it start when it did: its launch call,
// the work before it on its stream, an event, or (inferred) the work of another stream that ended just before. A host
// thread is followed through its leaf time; where it sat in a synchronizing call the walk goes on with the device work
// that the call waited for, and where an autograd thread took over, with that thread. Threads are crossed on evidence
// only; what nothing explains is `unknown` and counted as such.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/intervals.h"
#include "model/dependencies.h"
#include "model/leaf_time.h"
#include "model/step_parts.h"

namespace stepscope {

enum class PathClass : std::uint8_t {
  host_op,
  python,
  data_loading,
  runtime,
  launch,
  sync_wait,
  compute,
  communication,
  copy,
  set,
  device_gap,
  unknown,
};
inline constexpr std::size_t kPathClasses = 12;
std::string_view to_string(PathClass path_class);
std::string_view meaning_of(PathClass path_class);
std::string_view words_of(PathClass path_class);  // for readers, where `to_string` is for programs
// The part of a step that the class belongs to: the critical order of the step breakdown.
StepPart step_part(PathClass path_class);

using PathTimes = std::array<std::int64_t, kPathClasses>;

struct PathSegment {
  Interval when;
  SliceId slice = SliceId::none;  // what ran; of a gap: the work that came after it; none: nothing was recorded
  TrackId track = TrackId::none;
  PathClass what = PathClass::unknown;
  WaitEvidence why = WaitEvidence::none;  // how the recording shows that this waited for the segment before it
};

struct CriticalPath {
  Interval window;
  std::vector<PathSegment> segments;  // by time; they touch, from the window's start to its end

  PathTimes times() const;
};

class PathFinder {
 public:
  explicit PathFinder(const Trace& trace);

  // From the first start to the last end of host and device activity; empty without any.
  CriticalPath whole();
  // Its times alone: the path itself can be as large as the trace.
  PathTimes whole_times();
  // One per step, in its wall time (see step_walls): the walls share no instant. Given one after the other: all of them
  // together are as large as the trace.
  void each_step(const std::function<void(std::size_t step, const CriticalPath& path)>& take);
  // What bounds [window.start, window.end), walked from the thread `host`, else (none) from the device work that ended
  // last up to the window's end.
  CriticalPath within(Interval window, TrackId host);

  // What whole() is about, and the thread on which it ends (none: on the device).
  std::pair<Interval, TrackId> whole_window();

 private:
  friend class PathWalk;
  const Trace& trace_;
  Dependencies dependencies_;
  LeafTimes leaves_;
  TrackId main_ = TrackId::none;               // the host thread with most slices
  std::vector<std::vector<TrackId>> workers_;  // per track: the threads that it feeds
};

}  // namespace stepscope
