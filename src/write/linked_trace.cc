#include "write/linked_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "formats/file_text.h"
#include "formats/json_text.h"
#include "formats/out_file.h"
#include "model/dependencies.h"
#include "model/lookup.h"
#include "report/json_writer.h"

namespace stepscope::write {
namespace {

using report::JsonWriter;

// Nanoseconds as microseconds, exactly: doubles have too few digits for times since 1970.
std::string microseconds(std::int64_t ns) {
  const bool negative = ns < 0;
  const auto size = negative ? std::uint64_t{0} - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  return fmt::format("{}{}.{:03}", negative ? "-" : "", size / 1000, size % 1000);
}

// Per node: what of its slice no node that it called covers.
std::vector<std::int64_t> exclusive_times(const Trace& timeline, const graph::Link& link) {
  std::vector<std::uint32_t> node_of(timeline.slices.size(), graph::kNoNode);
  std::vector<std::int64_t> exclusive(link.slice.size(), 0);
  for (std::uint32_t node = 0; node < link.slice.size(); node++) {
    if (link.slice[node] == SliceId::none) continue;
    node_of[static_cast<std::size_t>(link.slice[node])] = node;
    exclusive[node] += timeline.slices.dur_ns[link.slice[node]];
  }
  for (const SliceId slice : link.slice) {
    if (slice == SliceId::none) continue;
    SliceId around = timeline.slices.parent[slice];
    for (int level = 0; around != SliceId::none && level < kDeepestWalk; level++) {
      if (node_of[static_cast<std::size_t>(around)] != graph::kNoNode) break;
      around = timeline.slices.parent[around];
    }
    if (around == SliceId::none) continue;
    if (const std::uint32_t node = node_of[static_cast<std::size_t>(around)]; node != graph::kNoNode)
      exclusive[node] -= timeline.slices.dur_ns[slice];
  }
  for (std::int64_t& ns : exclusive) ns = std::max<std::int64_t>(ns, 0);
  return exclusive;
}

std::string times_of(std::int64_t start_ns, std::int64_t dur_ns, std::int64_t exclusive_ns) {
  return fmt::format(R"("ts": {}, "inclusive_dur": {}, "exclusive_dur": {}, "start_ns": {}, "dur_ns": {})",
                     microseconds(start_ns), microseconds(dur_ns), microseconds(exclusive_ns), start_ns, dur_ns);
}

std::string category_of(const Trace& timeline, SliceId slice) {
  const CategoryId category = timeline.slices.category[slice];
  if (category == CategoryId::none) return "kernel";
  return std::string(timeline.strings[timeline.categories[static_cast<std::size_t>(category)].name]);
}

// A piece of device work as a node of the file, `caller` as the file's schema spells it.
std::string device_node(const Trace& timeline, std::uint32_t row, std::int64_t id, std::int64_t parent,
                        std::string_view caller, const std::string& waits) {
  const SliceId slice = timeline.device.slice[row];
  JsonWriter name, category;
  name.text(timeline.name(slice));
  category.text(category_of(timeline, slice));
  const std::int64_t dur_ns = timeline.slices.dur_ns[slice];
  std::string node = fmt::format(R"({{"id": {}, "name": {}, "{}": {}, "cat": {}, )", id, name.take(), caller, parent,
                                 category.take()) +
                     times_of(timeline.slices.start_ns[slice], dur_ns, dur_ns);
  if (timeline.device.stream.has(row)) node += fmt::format(R"(, "stream": {})", timeline.device.stream[row]);
  if (timeline.device.correlation.has(row))
    node += fmt::format(R"(, "correlation": {})", timeline.device.correlation[row]);
  return node + waits + R"(, "inputs": {"values": [], "shapes": [], "types": []},)" +
         R"( "outputs": {"values": [], "shapes": [], "types": []}, "attrs": []})";
}

std::vector<std::uint32_t> nodes_by_place(const GraphNodes& nodes) {
  std::vector<std::uint32_t> order(nodes.size());
  for (std::uint32_t node = 0; node < order.size(); node++) order[node] = node;
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return nodes.place[a] < nodes.place[b]; });
  return order;
}

// What waited for which piece of device work: work for an event, and the first operator that its thread began after a
// synchronizing call had returned. As members of nodes; ids are those of the pieces' nodes.
class Waits {
 public:
  Waits(const Trace& timeline, const graph::Link& link, std::int64_t first_id)
      : of_node_(link.slice.size()), of_row_(link.node_of.size()), id_of_(link.node_of.size(), 0) {
    for (std::uint32_t row = 0; row < id_of_.size(); row++) {
      if (link.node_of[row] != graph::kNoNode) id_of_[row] = first_id++;
    }
    const Dependencies found = dependencies(timeline);
    for (std::uint32_t row = 0; row < id_of_.size(); row++) add(of_row_[row], found.event_before[row]);
    std::map<TrackId, std::vector<std::pair<std::int64_t, std::uint32_t>>> starts;
    for (std::uint32_t node = 0; node < link.slice.size(); node++) {
      if (const SliceId slice = link.slice[node]; slice != SliceId::none)
        starts[timeline.slices.track[slice]].emplace_back(timeline.slices.start_ns[slice], node);
    }
    for (auto& [track, nodes] : starts) std::sort(nodes.begin(), nodes.end());
    for (const Released& released : found.released) {
      const auto& nodes = starts[timeline.slices.track[released.call]];
      const std::pair after(timeline.slices.end_ns(released.call), std::uint32_t{0});
      const auto next = std::lower_bound(nodes.begin(), nodes.end(), after);
      if (next != nodes.end()) add(of_node_[next->second], released.row);
    }
  }

  std::int64_t id_of(std::uint32_t row) const { return id_of_[row]; }
  std::string of_node(std::uint32_t node) const { return member(of_node_[node]); }
  std::string of_row(std::uint32_t row) const { return member(of_row_[row]); }

 private:
  void add(std::vector<std::int64_t>& waits, std::uint32_t row) const {
    if (row != Dependencies::none && id_of_[row] != 0) waits.push_back(id_of_[row]);
  }
  static std::string member(const std::vector<std::int64_t>& waits) {
    return waits.empty() ? "" : fmt::format(R"(, "sync_dep": [{}])", fmt::join(waits, ", "));
  }

  std::vector<std::vector<std::int64_t>> of_node_, of_row_;
  std::vector<std::int64_t> id_of_;  // per row of the device table; 0: no node
};

std::int64_t largest_id(const GraphNodes& nodes) {
  std::int64_t id = 0;
  for (std::size_t node = 0; node < nodes.size(); node++) id = std::max(id, nodes.id[node]);
  return id;
}

class Linked {
 public:
  Linked(const Trace& graph, const Trace& timeline, const graph::Link& link, std::string_view text)
      : graph_(graph),
        timeline_(timeline),
        link_(link),
        text_(text),
        waits_(timeline, link, largest_id(graph.nodes) + 1) {}

  Result<void> write(formats::OutFile& file) {
    const std::vector<std::int64_t> exclusive = exclusive_times(timeline_, link_);
    std::size_t written = 0;
    for (const std::uint32_t node : nodes_by_place(graph_.nodes)) {
      const std::size_t begin = graph_.nodes.place[node];
      const std::size_t end = begin < text_.size() ? formats::skip_value(text_, begin) : text_.npos;
      if (end == text_.npos || end < begin + 2 || text_[begin] != '{')
        return fail({ErrorKind::changed, "the node is no longer where it was read", graph_.source.path, begin,
                     "Open the file again"});
      file.add(text_.substr(written, end - 1 - written));
      const SliceId slice = link_.slice[node];
      if (slice != SliceId::none) {
        file.add(", " + times_of(timeline_.slices.start_ns[slice], timeline_.slices.dur_ns[slice], exclusive[node]) +
                 waits_.of_node(node));
      }
      written = end - 1;
    }
    if (graph_.nodes.size() > 0) {
      file.add("}");
      written++;
    }
    add_device_work(file);
    file.add(text_.substr(written));
    return {};
  }

 private:
  void add_device_work(formats::OutFile& file) {
    const std::string_view caller = text_.find("\"ctrl_deps\"") != text_.npos ? "ctrl_deps" : "parent";
    for (std::uint32_t row = 0; row < link_.node_of.size(); row++) {
      if (link_.node_of[row] == graph::kNoNode) continue;
      file.add(",\n" + device_node(timeline_, row, waits_.id_of(row), graph_.nodes.id[link_.node_of[row]], caller,
                                   waits_.of_row(row)));
    }
  }

  const Trace& graph_;
  const Trace& timeline_;
  const graph::Link& link_;
  std::string_view text_;
  Waits waits_;
};

}  // namespace

Result<void> write_linked_trace(const Trace& graph, const Trace& timeline, const graph::Link& link,
                                const std::string& out) {
  const Result<formats::FileText> text = formats::read_text(graph.source.path, UINT64_MAX);
  if (!text) return fail(text.error());
  auto file = formats::OutFile::create(out);
  if (!file) return fail(file.error());
  if (auto done = Linked(graph, timeline, link, text->text).write(*file); !done) return done;
  return file->finish();
}

}  // namespace stepscope::write
