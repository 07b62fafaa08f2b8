#include "report/json_writer.h"
#include "write/drawing/texts.h"

namespace stepscope::write::drawing {
namespace {

using report::JsonWriter;

constexpr int kSchemaVersion = 1;

void add_box(JsonWriter& json, std::size_t index, const graph::DrawnBox& box) {
  json.begin_object(JsonWriter::Layout::line);
  json.key("box").number(index);
  json.key("parent");
  box.parent == graph::kNoBox ? json.null() : json.number(box.parent);
  json.key("name").text(shown_name(box, kLongestName));
  if (!box.others) {
    json.key("kind").text(to_string(box.kind));
    json.key("rank").number(box.rank);
    json.key("id").number(box.id);
  }
  json.key("nodes").number(box.nodes).key("inside").number(box.inside).key("timed").number(box.timed).key("dur_ns");
  box.timed == 0 ? json.null() : json.number(box.dur_ns);
  json.end_object();
}

}  // namespace

std::string json_text(const graph::DrawnGraph& graph) {
  JsonWriter json;
  json.begin_object();
  json.key("schema_version").number(kSchemaVersion);
  json.key("nodes").number(graph.nodes).key("collapsed").boolean(graph.collapsed());
  json.key("waits_inside").number(graph.waits_inside).key("waits_omitted").number(graph.waits_omitted);
  json.key("boxes").begin_array();
  for (std::size_t i = 0; i < graph.boxes.size(); i++) add_box(json, i, graph.boxes[i]);
  json.end_array().key("arrows").begin_array();
  for (const graph::DrawnArrow& arrow : graph.arrows) {
    json.begin_object(JsonWriter::Layout::line);
    json.key("from").number(arrow.from).key("to").number(arrow.to).key("waits").number(arrow.waits).end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

}  // namespace stepscope::write::drawing
