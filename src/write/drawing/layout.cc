#include "write/drawing/layout.h"

#include <algorithm>
#include <utility>

#include "report/utf8.h"

namespace stepscope::write::drawing {
namespace {

using graph::DrawnGraph;

constexpr double kLetter = 5.8, kPadding = 14;  // of Helvetica at 10 points; wide letters included
constexpr double kLine = 12, kBetweenRows = 6, kBetweenColumns = 40;

// Boxes with what they call behind them, in the order of the file: callers stand before what they call.
std::vector<std::uint32_t> depth_first(const DrawnGraph& graph) {
  const auto count = static_cast<std::uint32_t>(graph.boxes.size());
  std::vector<std::vector<std::uint32_t>> called(count);
  std::vector<std::uint32_t> order, waiting;
  for (std::uint32_t box = count; box-- > 0;) {  // the last on the stack comes first
    const std::uint32_t parent = graph.boxes[box].parent;
    (parent == graph::kNoBox ? waiting : called[parent]).push_back(box);
  }
  while (!waiting.empty()) {
    const std::uint32_t box = waiting.back();
    waiting.pop_back();
    order.push_back(box);
    waiting.insert(waiting.end(), called[box].begin(), called[box].end());
  }
  return order;
}

double width_of(const Label& label) {
  const std::size_t letters = std::max(report::display_width(label.name), report::display_width(label.details));
  return kPadding + kLetter * static_cast<double>(letters);
}

// A column is as wide as its widest box.
void place_columns(const DrawnGraph& graph, std::vector<Place>& places) {
  std::vector<std::uint32_t> depth(places.size(), 0);
  std::vector<double> left;
  for (std::size_t box = 0; box < places.size(); box++) {
    if (graph.boxes[box].parent != graph::kNoBox) depth[box] = depth[graph.boxes[box].parent] + 1;
    if (depth[box] >= left.size()) left.resize(depth[box] + 1, 0);
    left[depth[box]] = std::max(left[depth[box]], places[box].width);
  }
  double at = 0;
  for (double& column : left) column = std::exchange(at, at + column + kBetweenColumns);
  for (std::size_t box = 0; box < places.size(); box++) places[box].left = left[depth[box]];
}

// What calls nothing takes the next row; who calls stands in the middle of the first and the last of it.
void place_rows(const DrawnGraph& graph, std::vector<Place>& places) {
  struct Span {
    double first = 1, last = 0;  // none yet: rows are at 0 and below
  };
  std::vector<bool> calls(places.size(), false);
  for (const graph::DrawnBox& box : graph.boxes) {
    if (box.parent != graph::kNoBox) calls[box.parent] = true;
  }
  double row = 0;
  for (const std::uint32_t box : depth_first(graph)) {
    if (calls[box]) continue;
    places[box].middle = row;
    row -= places[box].height + kBetweenRows;
  }
  std::vector<Span> below(places.size());
  for (std::size_t box = places.size(); box-- > 0;) {
    if (calls[box]) places[box].middle = (below[box].first + below[box].last) / 2;
    if (graph.boxes[box].parent == graph::kNoBox) continue;
    Span& above = below[graph.boxes[box].parent];
    const double middle = places[box].middle;
    const bool none = above.first > above.last;
    above = {none ? middle : std::min(above.first, middle), none ? middle : std::max(above.last, middle)};
  }
}

}  // namespace

std::vector<Place> lay_out(const DrawnGraph& graph, const std::vector<Label>& labels) {
  const bool two = std::any_of(labels.begin(), labels.end(), [](const Label& label) { return !label.details.empty(); });
  std::vector<Place> places;
  for (const Label& label : labels) places.push_back({.width = width_of(label), .height = kLine * (two ? 2 : 1) + 6});
  place_columns(graph, places);
  place_rows(graph, places);
  return places;
}

}  // namespace stepscope::write::drawing
