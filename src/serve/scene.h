// What the timeline page asks: lanes of all ranks on one axis, tiles of rectangles, one slice in detail, a search, sums
// of a stretch, and what is drawn over and beside the slices: critical paths, phases, counters. docs/serve.md specifies
// the answers.
//
// All times that leave here are ns after the origin: the first moment of the run on the run's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/made_once.h"
#include "serve/runs.h"
#include "timeline/counter_curves.h"
#include "timeline/path_pieces.h"
#include "timeline/phase_strip.h"

namespace stepscope::serve {

// What one answer may take; the page asks for less.
inline constexpr std::int64_t kMostPixels = 8192;
inline constexpr std::size_t kMostRects = 200'000;

struct Stretch {
  std::int64_t from_ns = 0, to_ns = 0;
};

class Scene {
 public:
  // Keeps a reference to the run, whose pyramids are made.
  explicit Scene(const OpenedRun& run);

  std::size_t rank_count() const { return pyramids_.size(); }
  std::size_t lane_count() const { return places_.size(); }  // that hold slices; those of counters follow
  std::string lanes_json() const;
  // Binary. What is narrower than two pixels is merged.
  std::string tiles(Stretch stretch, std::int64_t pixels, std::span<const std::uint32_t> lanes) const;
  Result<std::string> slice_json(std::size_t rank, std::uint32_t slice) const;
  std::string search_json(std::string_view text, std::size_t limit) const;
  Result<std::string> trace_file(std::size_t rank) const;  // its bytes
  std::string selection_json(Stretch stretch, std::span<const std::uint32_t> lanes) const;
  // Nothing: somebody else is having it made just now.
  std::optional<std::string> path_json(Stretch stretch, std::int64_t pixels,
                                       std::span<const std::uint32_t> ranks) const;
  std::optional<std::string> phases_json(Stretch stretch, std::int64_t pixels,
                                         std::span<const std::uint32_t> ranks) const;
  std::string counters_json(Stretch stretch, std::int64_t pixels, std::span<const std::uint32_t> lanes) const;

 private:
  struct Place {
    std::size_t rank = 0, lane = 0;  // index of the pyramid, lane in it
  };
  const timeline::Pyramid& pyramid(std::size_t rank) const { return *pyramids_[rank]; }
  std::vector<std::size_t> drawing_order() const;
  std::int64_t after_origin(std::size_t rank, std::int64_t time_ns) const;
  std::int64_t on_run_clock(std::int64_t after_origin_ns) const;
  std::int64_t in_file(std::size_t rank, std::int64_t after_origin_ns) const;
  std::int64_t length(std::size_t rank, std::int64_t start_ns, std::int64_t dur_ns) const;

  const Run& run_;
  std::size_t predicted_from_;  // see OpenedRun
  const std::vector<std::unique_ptr<timeline::Pyramid>>& pyramids_;
  std::vector<MadeOnce<timeline::PathPieces>> paths_;   // per rank
  std::vector<MadeOnce<timeline::PhaseStrip>> phases_;  // per rank
  std::vector<timeline::CounterCurve> counters_;
  std::size_t counters_left_out_ = 0;
  std::vector<Place> places_;              // per lane of the page
  std::vector<std::uint32_t> first_lane_;  // per rank
  std::vector<std::uint32_t> first_name_;  // per rank: its names are numbered from here
  std::int64_t origin_ns_ = 0, end_ns_ = 0;
};

}  // namespace stepscope::serve
