#include "diagnose/noted.h"

#include <cstdint>
#include <map>

#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose {

// The number of a thread goes on with each node that is made: the last operator that has one made it. Where a backward
// pass comes to a node, the pair of both says so too, also of the last number of a recording.
Noted::Noted(const Case& about) {
  struct Maker {
    std::int64_t start_ns = 0;
    SliceId slice = SliceId::none;
  };
  for (const Trace& trace : timelines(about.run)) {
    for (const stepscope::Backward& pair : trace.backward) makers_.insert({&trace, pair.forward});
    std::map<TrackId, std::map<std::int64_t, Maker>> threads;
    for (std::size_t row = 0; row < trace.ops.size(); row++) {
      if (!is_recorded(trace, row)) continue;
      const SliceId slice = trace.ops.slice[row];
      const std::int64_t start_ns = trace.slices.start_ns[slice];
      Maker& maker = threads[trace.slices.track[slice]][trace.ops.sequence[row]];
      if (maker.slice == SliceId::none || start_ns >= maker.start_ns) maker = {start_ns, slice};
    }
    for (const auto& [thread, numbers] : threads) {
      for (const auto& [number, maker] : numbers) {
        if (numbers.contains(number + 1)) makers_.insert({&trace, maker.slice});
      }
    }
  }
}

const Noted& noted(const Case& about) {
  return about.shared<Noted>([](const Case& of) { return Noted(of); });
}

}  // namespace stepscope::diagnose
