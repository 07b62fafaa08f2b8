// What is drawn over and beside the slices: critical paths, phases, counters. Columns, as there are thousands of
// pieces.
#include <algorithm>
#include <iterator>

#include "serve/scene.h"
#include "serve/scene_parts.h"

namespace stepscope::serve {
namespace {

using report::JsonWriter;
constexpr std::size_t kMostPieces = 20'000;
constexpr std::size_t kMostPoints = 200'000;

std::int64_t merge_ns(Stretch stretch, std::int64_t pixels) {
  return std::max<std::int64_t>(2 * ((stretch.to_ns - stretch.from_ns) / pixels), 1);
}

// Rather coarser than with holes, as with tiles. `find` takes the length below which pieces are merged and says whether
// that were few enough.
template <class Find>
void find_few(Stretch stretch, std::int64_t pixels, const Find& find) {
  while (!find(merge_ns(stretch, pixels)) && pixels > 1) pixels = std::max<std::int64_t>(pixels / 4, 1);
}

template <class Pieces, class Write>
void column(JsonWriter& json, std::string_view name, const Pieces& pieces, const Write& write) {
  json.key(name).begin_array(kLine);
  for (const auto& piece : pieces) write(piece);
  json.end_array();
}

template <std::size_t size, class Kind>
void names(JsonWriter& json, std::string_view key) {
  json.key(key).begin_array(kLine);
  for (std::size_t i = 0; i < size; i++) json.text(to_string(static_cast<Kind>(i)));
  json.end_array();
}

template <std::size_t size, class Kind>
void meanings(JsonWriter& json, std::string_view key) {
  json.key(key).begin_array(kLine);
  for (std::size_t i = 0; i < size; i++) json.text(meaning_of(static_cast<Kind>(i)));
  json.end_array();
}

}  // namespace

std::optional<std::string> Scene::path_json(Stretch stretch, std::int64_t pixels,
                                            std::span<const std::uint32_t> ranks) const {
  using timeline::PathPiece;
  std::vector<std::pair<std::uint32_t, const timeline::PathPieces*>> paths;
  for (const std::uint32_t rank : ranks) {
    // Of a prediction the moments alone are moved, and not what the path is found from.
    if (rank >= std::min(pyramids_.size(), predicted_from_)) continue;
    paths.emplace_back(rank, paths_[rank].get([&] { return timeline::PathPieces(pyramid(rank)); }));
    if (paths.back().second == nullptr) return std::nullopt;
  }
  std::vector<std::vector<PathPiece>> found(paths.size());
  find_few(stretch, pixels, [&](std::int64_t merge) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < paths.size(); i++) {
      const auto& [rank, path] = paths[i];
      found[i].clear();
      path->query(in_file(rank, stretch.from_ns), in_file(rank, stretch.to_ns), merge, found[i]);
      std::erase_if(found[i], [](const PathPiece& piece) { return piece.lane == PathPiece::kNoLane; });
      count += found[i].size();
    }
    return count <= kMostPieces;
  });
  JsonWriter json;
  json.begin_object();
  names<kPathClasses, PathClass>(json, "classes");
  meanings<kPathClasses, PathClass>(json, "class_meanings");
  names<kPathEvidences, WaitEvidence>(json, "evidences");
  meanings<kPathEvidences, WaitEvidence>(json, "evidence_meanings");
  json.key("ranks").begin_array();
  for (std::size_t i = 0; i < paths.size(); i++) {
    const std::uint32_t rank = paths[i].first;
    json.begin_object().key("rank").number(rank).key("of").text(paths[i].second->of_steps() ? "steps" : "recording");
    const auto of = [&](std::string_view name, const auto& value_of) {
      column(json, name, found[i], [&](const PathPiece& piece) { json.number(value_of(piece)); });
    };
    of("start", [&](const PathPiece& piece) { return after_origin(rank, piece.start_ns); });
    of("end", [&](const PathPiece& piece) { return after_origin(rank, piece.end_ns); });
    of("lane", [&](const PathPiece& piece) { return first_lane_[rank] + piece.lane; });
    of("row", [](const PathPiece& piece) { return piece.row; });
    column(json, "slice", found[i], [&](const PathPiece& piece) {
      piece.slice == SliceId::none ? json.null() : json.number(static_cast<std::uint32_t>(piece.slice));
    });
    of("count", [](const PathPiece& piece) { return piece.count; });
    of("class", [](const PathPiece& piece) { return static_cast<unsigned>(piece.what); });
    of("evidence", [](const PathPiece& piece) { return static_cast<unsigned>(piece.why); });
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

std::optional<std::string> Scene::phases_json(Stretch stretch, std::int64_t pixels,
                                              std::span<const std::uint32_t> ranks) const {
  using timeline::PhasePiece;
  JsonWriter json;
  json.begin_object();
  names<kPhases, Phase>(json, "phases");
  json.key("ranks").begin_array();
  for (const std::uint32_t rank : ranks) {
    if (rank >= pyramids_.size()) continue;
    const auto* strip = phases_[rank].get([&] { return timeline::PhaseStrip(pyramid(rank).trace()); });
    if (strip == nullptr) return std::nullopt;
    std::vector<PhasePiece> found;
    find_few(stretch, pixels, [&](std::int64_t merge) {
      found.clear();
      strip->query(in_file(rank, stretch.from_ns), in_file(rank, stretch.to_ns), merge, found);
      return found.size() <= kMostPieces / 4;
    });
    json.begin_object().key("rank").number(rank);
    const auto of = [&](std::string_view name, const auto& value_of) {
      column(json, name, found, [&](const PhasePiece& piece) { json.number(value_of(piece)); });
    };
    of("start", [&](const PhasePiece& piece) { return after_origin(rank, piece.start_ns); });
    of("end", [&](const PhasePiece& piece) { return after_origin(rank, piece.end_ns); });
    of("phase", [](const PhasePiece& piece) { return static_cast<unsigned>(piece.phase); });
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string Scene::counters_json(Stretch stretch, std::int64_t pixels, std::span<const std::uint32_t> lanes) const {
  using timeline::CounterPoint;
  std::vector<std::pair<std::uint32_t, std::vector<CounterPoint>>> found;
  for (const std::uint32_t lane : lanes) {
    if (lane >= places_.size() && lane - places_.size() < counters_.size()) found.push_back({lane, {}});
  }
  find_few(stretch, pixels, [&](std::int64_t merge) {
    std::size_t count = 0;
    for (auto& [lane, points] : found) {
      points.clear();
      counters_[lane - places_.size()].query(on_run_clock(stretch.from_ns), on_run_clock(stretch.to_ns), merge, points);
      count += points.size();
    }
    return count <= kMostPoints;
  });
  JsonWriter json;
  json.begin_object().key("lanes").begin_array();
  for (const auto& [lane, points] : found) {
    json.begin_object().key("id").number(lane);
    column(json, "start", points, [&](const CounterPoint& point) { json.number(point.start_ns - origin_ns_); });
    column(json, "low", points, [&](const CounterPoint& point) { json.number(point.low); });
    column(json, "high", points, [&](const CounterPoint& point) { json.number(point.high); });
    json.end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace stepscope::serve
