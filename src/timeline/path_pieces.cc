#include "timeline/path_pieces.h"

#include <algorithm>

namespace stepscope::timeline {

PathPieces::PathPieces(const Pyramid& pyramid) {
  const Trace& trace = pyramid.trace();
  PathFinder find(trace);
  find.each_step([&](std::size_t step, const CriticalPath& path) {
    of_steps_ = of_steps_ || (!trace.steps[step].partial && !path.segments.empty());
    add(pyramid, path);
  });
  if (!of_steps_) {
    pieces_.clear();
    add(pyramid, find.whole());
  }
}

void PathPieces::add(const Pyramid& pyramid, const CriticalPath& path) {
  const Trace& trace = pyramid.trace();
  const auto put = [&](const PathSegment& segment, Interval when, bool in_slice) {
    PathPiece piece{when.start, when.end, SliceId::none, PathPiece::kNoLane, 0, 1, segment.what, segment.why};
    std::size_t lane = 0;
    if (in_slice ? pyramid.place_of(segment.slice, lane, piece.row) : pyramid.lane_of(segment.track, lane)) {
      piece.lane = static_cast<std::uint32_t>(lane);
    }
    if (in_slice) piece.slice = segment.slice;
    pieces_.push_back(piece);
  };
  for (const PathSegment& segment : path.segments) {
    const bool gap =
        segment.slice == SliceId::none || segment.what == PathClass::device_gap || segment.what == PathClass::unknown;
    // Of a launch: first its call, then the way to the device.
    const std::int64_t end = gap ? segment.when.start : std::min(trace.slices.end_ns(segment.slice), segment.when.end);
    if (end > segment.when.start) put(segment, {segment.when.start, end}, true);
    if (end < segment.when.end) put(segment, {std::max(end, segment.when.start), segment.when.end}, false);
  }
}

void PathPieces::query(std::int64_t from_ns, std::int64_t to_ns, std::int64_t merge_ns,
                       std::vector<PathPiece>& out) const {
  struct Open {
    PathPiece piece;
    std::int64_t longest_ns;
  };
  std::vector<Open> open;  // of the stretch: one for each row, of which a path has few at a time
  std::int64_t stretch = 0;
  const auto flush = [&] {
    std::sort(open.begin(), open.end(),
              [](const Open& a, const Open& b) { return a.piece.start_ns < b.piece.start_ns; });
    for (const Open& one : open) out.push_back(one.piece);
    open.clear();
  };
  auto at = std::partition_point(pieces_.begin(), pieces_.end(),
                                 [&](const PathPiece& piece) { return piece.end_ns <= from_ns; });
  for (; at != pieces_.end() && at->start_ns < to_ns; ++at) {
    const std::int64_t length = at->end_ns - at->start_ns;
    if (length >= merge_ns) {
      flush();
      out.push_back(*at);
      continue;
    }
    if (at->start_ns / merge_ns != stretch) flush();
    stretch = at->start_ns / merge_ns;
    const auto same = std::find_if(open.begin(), open.end(), [&](const Open& one) {
      return one.piece.lane == at->lane && one.piece.row == at->row;
    });
    if (same == open.end()) {
      open.push_back({*at, length});
      continue;
    }
    PathPiece& piece = same->piece;
    piece.end_ns = at->end_ns;
    piece.count += at->count;
    piece.slice = SliceId::none;
    if (length > same->longest_ns) {
      same->longest_ns = length;
      piece.what = at->what;
      piece.why = at->why;
    }
  }
  flush();
}

}  // namespace stepscope::timeline
