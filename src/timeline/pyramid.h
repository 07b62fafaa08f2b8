// The slices of a run as rows of rectangles, merged level by level, so that a picture of any stretch of time takes time
// and memory by its width in pixels and not by how much was recorded.
//
// A lane is a track; its rows are depths of nesting (overlapping slices move down a row), so that the rectangles of a
// row never overlap. Level 0 of a row are its slices by start. A level above holds those that last at least its bucket
// as they are; what is shorter is merged with its neighbors in the same bucket. A level is kept only where it has at
// most half the rectangles of the one below, so all of them together are never larger than the slices themselves.
//
// Expected workload: 10^5 to 10^8 slices, built once, thousands of queries of some thousand rectangles. 7 bytes a
// slice, and 33 for each rectangle of the levels, of which there are at most as many as slices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/trace.h"

namespace stepscope::timeline {

enum class RectClass : std::uint8_t {
  op,             // an operator on the host
  runtime,        // a call of the device's runtime or driver
  annotation,     // a range of the program, a step
  python,         // a Python function
  compute,        // a kernel
  communication,  // a kernel that communicates, or a call of a library that does
  copy,           // a copy or a fill
  wait,           // a wait
  other,
};

struct Rect {
  std::int64_t start_ns = 0, dur_ns = 0;  // on the clock of the file
  SliceId slice = SliceId::none;          // none: several
  std::uint32_t count = 1;
  StringId name = StringId::none;     // of several: of the longest that it was merged from
  RectClass kind = RectClass::other;  // the same
  float fill = 1;                     // share of the stretch in which something is
};

struct Lane {
  TrackId track = TrackId::none;
  std::uint64_t slices = 0;
  std::uint32_t rows = 0;
};

class Pyramid {
 public:
  // Keeps a reference: `trace`, which is derived, outlives this.
  explicit Pyramid(const Trace& trace);

  const Trace& trace() const { return trace_; }
  // Of tracks that hold slices: threads by process, then devices.
  const std::vector<Lane>& lanes() const { return lanes_; }
  std::int64_t start_ns() const { return start_ns_; }
  std::int64_t end_ns() const { return end_ns_; }

  // The rectangles of a row that overlap [from_ns, to_ns), by start; what is shorter than `merge_ns` is merged.
  void query(std::size_t lane, std::uint32_t row, std::int64_t from_ns, std::int64_t to_ns, std::int64_t merge_ns,
             std::vector<Rect>& out) const;

  RectClass kind_of(SliceId slice) const { return static_cast<RectClass>(kinds_[static_cast<std::size_t>(slice)]); }
  // Where a slice is drawn; false: nowhere.
  bool place_of(SliceId slice, std::size_t& lane, std::uint32_t& row) const;
  bool lane_of(TrackId track, std::size_t& lane) const;
  std::uint64_t bytes() const;

 private:
  struct Level {
    std::int64_t bucket_ns = 0;
    std::vector<std::int64_t> start_ns, dur_ns;
    std::vector<SliceId> slice;
    std::vector<std::uint32_t> count;
    std::vector<StringId> name;
    std::vector<std::uint8_t> kind;
    std::vector<float> fill;

    std::size_t size() const { return start_ns.size(); }
    void add(const Rect& rect);
    Rect at(std::size_t i) const;
  };
  struct Row {
    std::vector<SliceId> slices;  // by start
    std::vector<Level> levels;    // by bucket
  };
  struct Merger;

  void classify();
  void place(std::size_t lane, std::vector<SliceId>& slices);
  void build_levels(Row& row) const;
  Rect rect_of(SliceId slice) const;

  const Trace& trace_;
  std::vector<std::uint8_t> kinds_;  // per slice
  std::vector<std::uint16_t> row_of_;
  std::vector<std::uint32_t> lane_of_track_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Row>> rows_;  // per lane
  std::int64_t start_ns_ = 0, end_ns_ = 0;
};

}  // namespace stepscope::timeline
