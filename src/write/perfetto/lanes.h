// Which Perfetto tracks the lanes of one rank become, and which slices go on which.
//
// Slices of a Perfetto track have to nest. What overlaps on one of our tracks goes to a further lane beside the first,
// so that nothing is cut or left out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/trace.h"
#include "write/perfetto/packets.h"
#include "write/writer.h"

namespace stepscope::write::perfetto {

inline constexpr std::int32_t kOwnProcess = 1 << 30;  // no operating system gives such numbers

// Numbers that have to be distinct in the whole file.
class Numbers {
 public:
  std::uint64_t tracks(std::uint64_t count) {
    const std::uint64_t first = next_track_;
    next_track_ += count;
    return first;
  }
  std::int32_t process() { return next_process_++; }

 private:
  std::uint64_t next_track_ = 1;
  std::int32_t next_process_ = kOwnProcess;
};

using CounterKey = std::tuple<TrackId, StringId, StringId>;  // track, name, key

struct Lanes {
  std::uint64_t about = 0;               // the track of the event that tells of the recording
  std::vector<std::uint64_t> processes;  // their tracks, in the order of first use
  std::vector<std::size_t> process_of;   // of tracks
  std::vector<std::uint64_t> first;      // of tracks: the track of the first lane; the others follow it
  std::vector<std::uint32_t> count;      // of tracks: lanes
  std::map<CounterKey, std::uint64_t> counters;
  // allocator: device type and index, and whether it is what was reserved
  std::map<std::tuple<std::int16_t, std::int16_t, bool>, std::uint64_t> memory;

  std::uint64_t of(TrackId track) const { return first[static_cast<std::size_t>(track)]; }
};

// Gives all tracks of a rank their numbers. Needs a derived trace.
Lanes plan_lanes(const Trace& trace, Numbers& numbers);

struct LaneVisitor {
  std::function<void(SliceId slice, std::uint32_t lane)> open;
  std::function<void(SliceId slice, std::uint32_t lane)> close;
};

// The slices of a track, in the order of time on each lane. Returns the number of lanes.
std::uint32_t visit_lanes(const Trace& trace, std::size_t track, const LaneVisitor& visitor);

// How the names of a rank are written where several share a file.
struct RankNames {
  bool is_merged = false;
  std::int64_t rank = 0;
  WriteOptions options;

  std::string operator()(std::string_view name) const {
    return is_merged ? lane_name(rank, name, options) : std::string(name);
  }
};

// The descriptors of all tracks.
void describe_lanes(Packets& packets, const Trace& trace, const Lanes& lanes, Numbers& numbers, const RankNames& names);

}  // namespace stepscope::write::perfetto
