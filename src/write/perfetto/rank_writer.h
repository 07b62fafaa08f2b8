// One rank as packets: what is known of the recording, its tracks, then its slices lane by lane, and what has no
// length.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "write/perfetto/lanes.h"
#include "write/perfetto/packets.h"
#include "write/perfetto/source_text.h"

namespace stepscope::write::perfetto {

struct Place {
  std::size_t index = 0, ranks = 1;  // of the rank in the file
  std::int64_t offset_ns = 0;        // what is added to its times
  std::int64_t first_ns = 0;         // its earliest time
};

class RankWriter {
 public:
  RankWriter(const Trace& trace, Place place, formats::OutFile& file, Numbers& numbers, RankNames names);
  void write();

 private:
  void about();
  void about_tracks(Annotations& to);
  void slices(std::size_t track);
  void begin_slice(SliceId slice, std::uint64_t track);
  void details(SliceId slice);
  void flows(const std::uint32_t* begin, const std::uint32_t* end, std::int64_t event_ns);
  void loose_flows();
  void memory();
  void instants();
  void counters();
  std::uint64_t flow_id(std::size_t row) const;
  void bind_flows();

  const Trace& trace_;
  Place place_;
  Numbers& numbers_;
  RankNames names_;
  Packets packets_;
  Lanes lanes_;
  SourceText source_;
  // Flows by the slice that they begin or end at, then by row; those that are at no slice have SliceId::none, the last.
  std::vector<SliceId> flow_slices_;
  std::vector<std::uint32_t> flow_rows_;
};

}  // namespace stepscope::write::perfetto
