// Builds the pyramids of a run and asks for pictures of it at random, as somebody does who zooms and pans.
//
//   tile_file PATH…  →  {"slices", "lanes", "build_s", "bytes_per_slice", "median_ms", "p95_ms", "worst_ms",
//   "most_rects"}; wall-clock ms of 2,000 pictures of 20 lanes, 1,200 pixels wide; each from all of the run down to 10
//   us
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "cost.h"
#include "model/windows.h"
#include "session/session.h"
#include "timeline/pyramid.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  using namespace stepscope;
  const std::vector<std::string> paths(argv + 1, argv + argc);
  const auto run = session::open(paths, {});
  if (!run) {
    std::fprintf(stderr, "%s\n", to_text(run.error()).c_str());
    return 1;
  }
  const bench::Cost build;
  std::vector<timeline::Pyramid> pyramids;
  std::uint64_t bytes = 0, slices = 0;
  for (const Trace& trace : timelines(*run)) {
    pyramids.emplace_back(trace);
    bytes += pyramids.back().bytes();
    slices += trace.slices.size();
  }
  const double build_s = build.cpu_s();
  struct Place {
    const timeline::Pyramid* pyramid;
    std::size_t lane;
  };
  std::vector<Place> lanes;
  for (const auto& pyramid : pyramids) {
    for (std::size_t lane = 0; lane < pyramid.lanes().size(); lane++) lanes.push_back({&pyramid, lane});
  }
  if (lanes.empty()) return 1;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<double> times;
  std::vector<timeline::Rect> rects;
  std::size_t most = 0;
  for (int i = 0; i < 2000; i++) {
    const std::size_t first = random() % lanes.size();
    std::size_t drawn = 0;
    const double zoom = part(random), where = part(random);
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t j = 0; j < std::min<std::size_t>(20, lanes.size()); j++) {
      const auto& [pyramid, lane] = lanes[(first + j) % lanes.size()];
      const auto span = static_cast<double>(pyramid->end_ns() - pyramid->start_ns());
      const double width = std::max(span * std::pow(1e4 / std::max(span, 1e4), zoom), 1.0);
      const auto from = pyramid->start_ns() + static_cast<std::int64_t>((span - width) * where);
      const auto merge = std::max<std::int64_t>(static_cast<std::int64_t>(2 * width / 1200), 1);
      for (std::uint32_t row = 0; row < pyramid->lanes()[lane].rows; row++) {
        rects.clear();
        pyramid->query(lane, row, from, from + static_cast<std::int64_t>(width), merge, rects);
        drawn += rects.size();
      }
    }
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    most = std::max(most, drawn);
  }
  std::sort(times.begin(), times.end());
  std::printf(
      "{\"slices\": %llu, \"lanes\": %zu, \"build_s\": %.3f, \"bytes_per_slice\": %.1f, \"median_ms\": %.3f, "
      "\"p95_ms\": "
      "%.3f, \"worst_ms\": %.3f, \"most_rects\": %zu}\n",
      static_cast<unsigned long long>(slices), lanes.size(), build_s,
      static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(slices, 1)), times[times.size() / 2],
      times[times.size() * 95 / 100], times.back(), most);
  return 0;
}
