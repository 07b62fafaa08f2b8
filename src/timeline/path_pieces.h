// The critical path of a rank as pieces of lanes, merged like the slices for any zoom.
//
// The path is the one that the answer critical_path is about: of each step where there are whole ones, else of the
// whole recording. 40 bytes for each segment of it, of which there may be as many as slices; made when first asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "model/critical_path.h"
#include "timeline/pyramid.h"

namespace stepscope::timeline {

struct PathPiece {
  static constexpr std::uint32_t kNoLane = 0xffffffff;

  std::int64_t start_ns = 0, end_ns = 0;  // on the clock of the file
  SliceId slice = SliceId::none;          // what ran; none: a gap, or several
  std::uint32_t lane = kNoLane;           // of the pyramid; none: nothing was recorded
  std::uint32_t row = 0;
  std::uint32_t count = 1;  // segments that it stands for
  PathClass what = PathClass::unknown;
  WaitEvidence why = WaitEvidence::none;  // how the recording shows that this waited for the piece before it
};

class PathPieces {
 public:
  explicit PathPieces(const Pyramid& pyramid);

  bool of_steps() const { return of_steps_; }
  // The pieces that overlap [from_ns, to_ns), by start; those shorter than `merge_ns` are one where they lie in the
  // same row and begin in the same stretch of that length.
  void query(std::int64_t from_ns, std::int64_t to_ns, std::int64_t merge_ns, std::vector<PathPiece>& out) const;

 private:
  void add(const Pyramid& pyramid, const CriticalPath& path);

  std::vector<PathPiece> pieces_;  // by start; disjoint
  bool of_steps_ = false;
};

}  // namespace stepscope::timeline
