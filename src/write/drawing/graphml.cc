// GraphML, as yEd, Gephi and networkx read it.
#include <fmt/format.h>

#include "write/drawing/texts.h"

namespace stepscope::write::drawing {
namespace {

// What XML has no spelling for, shown_name() has replaced.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

constexpr std::string_view kHead = R"(<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="name" for="node" attr.name="name" attr.type="string"/>
  <key id="kind" for="node" attr.name="kind" attr.type="string"/>
  <key id="rank" for="node" attr.name="rank" attr.type="long"/>
  <key id="id" for="node" attr.name="id" attr.type="long"/>
  <key id="nodes" for="node" attr.name="nodes" attr.type="long"/>
  <key id="inside" for="node" attr.name="inside" attr.type="long"/>
  <key id="timed" for="node" attr.name="timed" attr.type="long"/>
  <key id="dur_ns" for="node" attr.name="dur_ns" attr.type="long"/>
  <key id="edge" for="edge" attr.name="edge" attr.type="string"/>
  <key id="waits" for="edge" attr.name="waits" attr.type="long"/>
  <graph id="execution" edgedefault="directed">
)";

template <class T>
std::string data(std::string_view key, const T& value) {
  return fmt::format("<data key=\"{}\">{}</data>", key, value);
}

}  // namespace

std::string graphml_text(const graph::DrawnGraph& graph) {
  std::string out(kHead);
  for (std::size_t i = 0; i < graph.boxes.size(); i++) {
    const graph::DrawnBox& box = graph.boxes[i];
    out += fmt::format("    <node id=\"n{}\">{}", i, data("name", escaped(shown_name(box, kLongestName))));
    if (!box.others) out += data("kind", to_string(box.kind)) + data("rank", box.rank) + data("id", box.id);
    out += data("nodes", box.nodes) + data("inside", box.inside) + data("timed", box.timed);
    if (box.timed > 0) out += data("dur_ns", box.dur_ns);
    out += "</node>\n";
  }
  for (std::size_t i = 0; i < graph.boxes.size(); i++) {
    if (graph.boxes[i].parent == graph::kNoBox) continue;
    out += fmt::format("    <edge source=\"n{}\" target=\"n{}\">{}</edge>\n", graph.boxes[i].parent, i,
                       data("edge", "call"));
  }
  for (const graph::DrawnArrow& arrow : graph.arrows) {
    out += fmt::format("    <edge source=\"n{}\" target=\"n{}\">{}{}</edge>\n", arrow.from, arrow.to,
                       data("edge", "wait"), data("waits", arrow.waits));
  }
  return out += "  </graph>\n</graphml>\n";
}

}  // namespace stepscope::write::drawing
