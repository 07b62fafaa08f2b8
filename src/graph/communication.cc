#include "graph/communication.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "formats/file_text.h"
#include "formats/json_text.h"
#include "model/collective_work.h"
#include "model/host_names.h"
#include "model/lookup.h"

namespace stepscope::graph {
namespace {

constexpr int kDeepestCall = 16;

// The elements of the JSON list that `text` is, as raw texts.
std::vector<std::string_view> elements(std::string_view text) {
  std::vector<std::string_view> all;
  std::size_t at = formats::skip_space(text, 0);
  if (at >= text.size() || text[at] != '[') return all;
  for (at++; at < text.size();) {
    at = formats::skip_space(text, at);
    if (at < text.size() && text[at] == ',') at = formats::skip_space(text, at + 1);
    if (at >= text.size() || text[at] == ']') break;
    const std::size_t end = formats::skip_value(text, at);
    if (end == text.npos || end == at) break;
    all.push_back(text.substr(at, end - at));
    at = end;
  }
  return all;
}

struct PointToPoint {
  std::int64_t peer = kAbsent, tag = kAbsent;
};

// c10d::send and recv_ take tensors, group, peer and tag; recv_any_source_ has no peer.
PointToPoint of_arguments(std::string_view name, const std::vector<std::string_view>& values) {
  const auto number = [&](std::size_t at) {
    if (at >= values.size()) return kAbsent;
    const std::string text = formats::value_text(values[at]);
    std::int64_t value = kAbsent;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    return wrong == std::errc() && end == text.data() + text.size() ? value : kAbsent;
  };
  if (name == "c10d::recv_any_source_") return {kAbsent, number(2)};
  if (name == "c10d::send" || name == "c10d::recv_") return {number(2), number(3)};
  return {};
}

class Finder {
 public:
  explicit Finder(OpGraph& graph) : graph_(graph) {}

  void run() {
    std::vector<bool> launched(graph_.nodes.size(), false);  // host nodes around communication on a device
    for (std::uint32_t at = 0; at < graph_.nodes.size(); at++) {
      if (!graph_.nodes[at].on_device || !take_device(at)) continue;
      std::uint32_t caller = graph_.nodes[at].caller;
      for (int level = 0; level < kDeepestCall && caller != kNoNode; level++) {
        launched[caller] = true;
        caller = graph_.nodes[caller].caller;
      }
    }
    for (std::uint32_t at = 0; at < graph_.nodes.size(); at++) {
      const OpNode& node = graph_.nodes[at];
      if (node.kind == OpKind::host && !launched[at] && node.piece == 0) take_host(at);
    }
    innermost_only();
  }

 private:
  void add(std::uint32_t at, Communication communication) {
    OpNode& node = graph_.nodes[at];
    node.kind = communication.kind == CollectiveKind::send      ? OpKind::send
                : communication.kind == CollectiveKind::receive ? OpKind::receive
                                                                : OpKind::collective;
    node.communication = static_cast<std::uint32_t>(graph_.communications.size());
    graph_.communications.push_back(std::move(communication));
  }

  Communication of_row(std::uint32_t collective) const {
    const Trace& trace = *graph_.timeline;
    const Collectives& rows = trace.collectives;
    Communication found;
    const auto text = [&](StringId id) { return id == StringId::none ? std::string_view() : trace.strings[id]; };
    found.kind = collective_kind(text(rows.kind[collective]));
    found.group = text(rows.group_name[collective]);
    found.bytes = collective_bytes(trace, collective).value_or(kAbsent);
    found.peer = rows.peer[collective];
    return found;
  }

  bool take_device(std::uint32_t at) {
    const OpNode& node = graph_.nodes[at];
    if (node.row != kNoNode) {
      const Trace& trace = *graph_.timeline;
      if (static_cast<DeviceClass>(trace.device.device_class[node.row]) != DeviceClass::communication) return false;
      const std::uint32_t collective = collective_of(trace, node.row);
      Communication found;
      if (collective != kNoCollective) found = of_row(collective);
      if (found.kind == CollectiveKind::other) found.kind = collective_kind(graph_.name(node));
      if (found.bytes == kAbsent && node.caller != kNoNode) complete(graph_.nodes[node.caller], found);
      add(at, std::move(found));
      return true;
    }
    const std::string_view name = graph_.name(node);
    if (!name.starts_with("nccl") && !name.starts_with("rccl")) return false;
    Communication found;
    found.kind = collective_kind(name);
    if (node.caller != kNoNode) complete(graph_.nodes[node.caller], found);
    add(at, std::move(found));
    return true;
  }

  // Group and bytes from the nearest caller that the execution trace says them of.
  void complete(OpNode node, Communication& found) const {
    for (int level = 0; level < kDeepestCall; level++) {
      if (graph_.graph != nullptr && node.node != kNoNode) {
        const GraphNodes& nodes = graph_.graph->nodes;
        if (found.bytes == kAbsent) found.bytes = nodes.comm_bytes[node.node];
        const StringId group = nodes.group_name[node.node];
        if (found.group.empty() && group != StringId::none) found.group = graph_.graph->strings[group];
      }
      if (node.caller == kNoNode) return;
      node = graph_.nodes[node.caller];
    }
  }

  bool communicates(const OpNode& node) const {
    // The call on the calling thread: where the recording lacks what a worker did for it, it is all there is.
    const std::string_view name = graph_.name(node);
    if (name.starts_with("c10d::") && collective_kind(name) != CollectiveKind::other) return true;
    if (graph_.graph != nullptr && node.node != kNoNode) {
      const NodeKind kind = graph_.graph->nodes.kind[node.node];
      return kind == NodeKind::collective || kind == NodeKind::send || kind == NodeKind::receive;
    }
    if (graph_.graph != nullptr || node.slice == SliceId::none) return false;
    return row_of(graph_.timeline->collectives.slice, node.slice) < graph_.timeline->collectives.size() ||
           is_host_communication(name);
  }

  void take_host(std::uint32_t at) {
    const OpNode& node = graph_.nodes[at];
    if (!communicates(node)) return;
    Communication found;
    if (node.slice != SliceId::none) {
      const std::size_t row = row_of(graph_.timeline->collectives.slice, node.slice);
      if (row < graph_.timeline->collectives.size()) found = of_row(static_cast<std::uint32_t>(row));
    }
    if (found.kind == CollectiveKind::other) found.kind = collective_kind(graph_.name(node));
    if (found.bytes == kAbsent) found.bytes = input_bytes(node);
    complete(node, found);
    take_arguments(at, found);
    add(at, std::move(found));
  }

  std::int64_t input_bytes(const OpNode& node) const {
    if (node.node != kNoNode) {
      const GraphNodes& nodes = graph_.graph->nodes;
      const StringId dims = nodes.input_dims[node.node], types = nodes.input_types[node.node];
      if (dims == StringId::none || types == StringId::none) return kAbsent;
      return largest_input_bytes(graph_.graph->strings[dims], graph_.graph->strings[types]).value_or(kAbsent);
    }
    const Ops& ops = graph_.timeline->ops;
    const std::size_t op = row_of(ops.slice, node.slice);
    if (op >= ops.size() || ops.input_dims[op] == StringId::none || ops.input_types[op] == StringId::none)
      return kAbsent;
    return largest_input_bytes(graph_.timeline->strings[ops.input_dims[op]],
                               graph_.timeline->strings[ops.input_types[op]])
        .value_or(kAbsent);
  }

  // Peer and tag are arguments of the call itself or above: of its slice, else of its node's text.
  void take_arguments(std::uint32_t node, Communication& found) {
    if (found.kind != CollectiveKind::send && found.kind != CollectiveKind::receive) return;
    for (std::uint32_t at = node; at != kNoNode; at = graph_.nodes[at].caller) {
      const OpNode& call = graph_.nodes[at];
      const std::string_view name = graph_.name(call);
      if (!name.starts_with("c10d::")) continue;
      PointToPoint said;
      if (call.slice != SliceId::none) {
        const Ops& ops = graph_.timeline->ops;
        const std::size_t op = row_of(ops.slice, call.slice);
        if (op < ops.size() && ops.concrete_inputs[op] != StringId::none)
          said = of_arguments(name, elements(graph_.timeline->strings[ops.concrete_inputs[op]]));
      }
      if (said.peer == kAbsent && said.tag == kAbsent && call.node != kNoNode) said = of_text(call.node, name);
      if (found.peer == kAbsent) found.peer = said.peer;
      found.tag = said.tag;
      return;
    }
  }

  PointToPoint of_text(std::uint32_t node, std::string_view name) {
    if (!text_) {
      auto read = formats::read_text(graph_.graph->source.path, UINT64_MAX);
      text_ = read ? std::move(read->text) : std::string();
    }
    const std::size_t at = graph_.graph->nodes.place[node];
    if (at >= text_->size()) return {};
    for (const auto& member : formats::members(std::string_view(*text_).substr(at))) {
      if (member.key != "inputs") continue;
      if (member.value.starts_with('[')) return of_arguments(name, elements(member.value));
      for (const auto& part : formats::members(member.value)) {
        if (part.key == "values") return of_arguments(name, elements(part.value));
      }
    }
    return {};
  }

  // The inner call knows this rank's part, the outer one the whole too.
  static bool of_parts(CollectiveKind kind) {
    return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
           kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  }

  // What the outer call knows goes to the inner one, which is the communication.
  void join(OpNode& outer, const OpNode& node) {
    Communication& inner = graph_.communications[node.communication];
    const Communication& around = graph_.communications[outer.communication];
    if (inner.group.empty()) inner.group = around.group;
    if (inner.bytes == kAbsent || of_parts(inner.kind)) inner.bytes = std::max(inner.bytes, around.bytes);
    if (inner.peer == kAbsent) inner.peer = around.peer;
    if (inner.tag == kAbsent) inner.tag = around.tag;
    outer.kind = OpKind::host;
    outer.communication = kNoNode;
  }

  // A call that communicates and the call inside it are one communication: the inner one's.
  void innermost_only() {
    std::vector<std::uint32_t> without_call;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); at++) {
      const OpNode& node = graph_.nodes[at];
      if (node.communication == kNoNode || node.on_device) continue;
      bool called = graph_.name(node).starts_with("c10d::");
      std::uint32_t caller = node.caller;
      for (int level = 0; level < kDeepestCall && caller != kNoNode; level++, caller = graph_.nodes[caller].caller) {
        OpNode& outer = graph_.nodes[caller];
        called |= graph_.name(outer).starts_with("c10d::");
        if (outer.communication != kNoNode) join(outer, node);
      }
      if (!called) without_call.push_back(at);
    }
    join_workers(without_call);
    keep_used();
  }

  void keep_used() {
    std::vector<Communication> used;
    for (OpNode& node : graph_.nodes) {
      if (node.communication == kNoNode) continue;
      used.push_back(std::move(graph_.communications[node.communication]));
      node.communication = static_cast<std::uint32_t>(used.size() - 1);
    }
    graph_.communications = std::move(used);
  }

  // A worker that begins after its call has returned is not recorded as called by it. Each is what the first such call
  // of its kind before it had done.
  void join_workers(const std::vector<std::uint32_t>& workers) {
    std::array<std::deque<std::uint32_t>, kCollectiveKinds> waiting;
    auto worker = workers.begin();
    for (std::uint32_t at = 0; at < graph_.nodes.size() && worker != workers.end(); at++) {
      const OpNode& node = graph_.nodes[at];
      if (node.communication == kNoNode) continue;
      auto& calls = waiting[static_cast<std::size_t>(graph_.communications[node.communication].kind)];
      if (at == *worker) {
        worker++;
        if (calls.empty()) continue;
        join(graph_.nodes[calls.front()], node);
        calls.pop_front();
      } else if (!node.on_device && graph_.name(node).starts_with("c10d::")) {
        calls.push_back(at);
      }
    }
  }

  OpGraph& graph_;
  std::optional<std::string> text_;  // of the execution trace's file, read when it is first asked for
};

}  // namespace

void find_communication(OpGraph& graph) { Finder(graph).run(); }

}  // namespace stepscope::graph
