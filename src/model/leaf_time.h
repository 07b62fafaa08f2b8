// Leaf time: what a host thread was doing at each instant, as the innermost slice that was open then.
//
// One walk over the slices of a track, parents before children; a thread with n slices has at most 2n + 1 pieces. The
// pieces touch each other, so that every instant between the first start and the last end has exactly one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/intervals.h"
#include "model/trace.h"

namespace stepscope {

enum class HostWork : std::uint8_t {
  nothing,        // no slice was open
  python,         // in a Python frame or inside an annotation, outside any operator
  op,             // in an operator (or in a slice of an unknown category)
  runtime,        // in a runtime call that neither launches nor waits
  launch,         // in a call that puts work on a device
  sync,           // in a call that returns only when the device has done something
  data_loader,    // waiting for the data loader, whatever ran inside
  communication,  // in an operator that communicates on the host
};

// Python and nothing: the thread may have been waiting for another one.
constexpr bool may_wait(HostWork work) { return work == HostWork::nothing || work == HostWork::python; }

struct Leaf {
  std::int64_t start_ns;  // to the start of the next piece; the last piece marks the end and is of no length
  SliceId slice;
  HostWork work;
};

struct LeafTime {
  std::vector<Leaf> pieces;
  Intervals active;  // all that may not wait

  // Index of the piece that holds the instant just before `time_ns`; pieces.size() when the track had not begun.
  std::size_t before(std::int64_t time_ns) const;
  // Last instant up to `time_ns` at which the thread was active; kAbsent: never.
  std::int64_t last_active(std::int64_t time_ns) const;
};

class LeafTimes {
 public:
  explicit LeafTimes(const Trace& trace);
  const LeafTime& of(TrackId track);  // made when first asked for

 private:
  HostWork work_of(SliceId id, HostWork around);
  void walk(TrackId track, LeafTime& out);

  const Trace& trace_;
  std::vector<std::uint8_t> by_name_;  // verdict on a name, once asked for
  std::vector<LeafTime> tracks_;
  std::vector<bool> made_;
};

}  // namespace stepscope
