// Graphviz's language, with the place of everything: Graphviz only draws. Calls go from left to right, waits in dashed
// bows on the right of the boxes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/format.h"
#include "write/drawing/layout.h"
#include "write/drawing/texts.h"

namespace stepscope::write::drawing {
namespace {

using graph::DrawnBox;
using graph::DrawnGraph;

constexpr std::size_t kLabelWidth = 60;
constexpr double kSwing = 20, kWidest = 300, kHead = 6;  // points
constexpr std::string_view kHeader =
    "// neato -n2 -Tsvg FILE draws this as it is placed; dot places it anew, which takes minutes from 1,000 boxes on.\n"
    "digraph execution {\n"
    "  graph [rankdir=LR, outputorder=edgesfirst];\n"
    "  node [shape=box, style=filled, fixedsize=true, color=\"#888888\", fontname=\"Helvetica\", fontsize=10];\n"
    "  edge [color=\"#666666\", arrowsize=0.5, fontname=\"Helvetica\", fontsize=8];\n";

std::string_view fill_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::compute: return "#d8e8c8";
    case NodeKind::memory: return "#e8e0c0";
    case NodeKind::send:
    case NodeKind::receive:
    case NodeKind::collective: return "#f4d0c0";
    case NodeKind::process:
    case NodeKind::thread:
    case NodeKind::metadata: return "#e4e4e4";
    default: return "#d4e2f0";
  }
}

// Within quotes. "&" would begin an entity of HTML, and a backslash what stands for the name of the box.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out += '"';
}

// Under the name; empty where there is nothing to say.
std::string details_of(const DrawnBox& box) {
  std::string out;
  if (box.nodes > 1 || box.inside > 0) out = report::format_plural(box.nodes, "node");
  if (box.inside > 0) out += fmt::format(" + {} inside", report::format_count(static_cast<std::int64_t>(box.inside)));
  if (box.timed == 0) return out;
  out += out.empty() ? "" : ", ";
  out += report::format_time(static_cast<double>(box.dur_ns));
  if (box.timed < box.nodes) out += fmt::format(" of {}", report::format_count(static_cast<std::int64_t>(box.timed)));
  return out;
}

Label label_of(const DrawnGraph& graph, const DrawnBox& box) {
  std::string name = shown_name(box, kLabelWidth);
  if (graph.graphs > 1 && box.parent == graph::kNoBox && !box.others) name = fmt::format("rank {}: {}", box.rank, name);
  return {std::move(name), details_of(box)};
}

// A curve from one point to another, which it leaves and reaches sideways; `reach` is how far it swings out.
struct Curve {
  double from_x, from_y, to_x, to_y, reach, back;  // back: of the head, against the direction of the arrow
};

std::string spline(const Curve& curve) {
  return fmt::format("\"e,{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"", curve.to_x,
                     curve.to_y, curve.from_x, curve.from_y, curve.from_x + curve.reach, curve.from_y,
                     curve.to_x + curve.back * curve.reach, curve.to_y, curve.to_x + curve.back * kHead, curve.to_y);
}

std::string call_of(const Place& from, const Place& to) {
  return spline({from.right(), from.middle, to.left, to.middle, kSwing, -1});
}

// On the right of the boxes, wider the farther it goes.
std::string wait_of(const Place& from, const Place& to, std::uint64_t waits) {
  const double reach = kSwing + std::min(kWidest, std::abs(from.middle - to.middle) / 8);
  std::string out = spline({from.right(), from.middle, to.right(), to.middle, reach, 1});
  if (waits > 1) {
    const double x = (from.right() + to.right()) / 2 + reach * 0.75, y = (from.middle + to.middle) / 2;
    out += fmt::format(", label=\"{}\", lp=\"{:.1f},{:.1f}\"", waits, x, y);
  }
  return out;
}

}  // namespace

std::string dot_text(const DrawnGraph& graph) {
  std::vector<Label> labels;
  for (const DrawnBox& box : graph.boxes) labels.push_back(label_of(graph, box));
  const std::vector<Place> places = lay_out(graph, labels);
  std::string out(kHeader);
  for (std::size_t i = 0; i < graph.boxes.size(); i++) {
    const Place& place = places[i];
    std::string text = in_quotes(labels[i].name);
    if (!labels[i].details.empty()) text.insert(text.size() - 1, "\\n" + labels[i].details);
    out += fmt::format("  n{} [label={}, fillcolor=\"{}\", pos=\"{:.1f},{:.1f}\", width={:.3f}, height={:.3f}];\n", i,
                       text, fill_of(graph.boxes[i].kind), place.left + place.width / 2, place.middle, place.width / 72,
                       place.height / 72);
  }
  for (std::size_t i = 0; i < graph.boxes.size(); i++) {
    const std::uint32_t parent = graph.boxes[i].parent;
    if (parent != graph::kNoBox)
      out += fmt::format("  n{} -> n{} [pos={}];\n", parent, i, call_of(places[parent], places[i]));
  }
  for (const graph::DrawnArrow& arrow : graph.arrows) {
    out += fmt::format("  n{} -> n{} [style=dashed, color=\"#b04020\", pos={}];\n", arrow.from, arrow.to,
                       wait_of(places[arrow.from], places[arrow.to], arrow.waits));
  }
  return out += "}\n";
}

}  // namespace stepscope::write::drawing
