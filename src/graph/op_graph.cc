#include "graph/op_graph.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "graph/communication.h"
#include "graph/host_lanes.h"
#include "model/dependencies.h"
#include "model/lookup.h"
#include "model/node_graph.h"

namespace stepscope::graph {
namespace {

constexpr std::array<std::string_view, kOpEvidences> kEvidenceNames{
    "program order", "launch",    "stream order", "event wait",      "sync call",
    "autograd",      "hand over", "hand back",    "record function", "recorded"};

class Builder {
 public:
  Builder(const Trace* graph, const Trace* timeline) {
    out_.graph = graph;
    out_.timeline = timeline;
  }

  Result<OpGraph> build() {
    if (auto placed = place_host(); !placed) return fail(placed.error());
    find_hand_overs(lanes_);
    cut_at_workers();
    if (out_.timeline != nullptr) waits_ = dependencies(*out_.timeline);
    cut_at_syncs();
    for (std::uint32_t lane = 0; lane < lanes_.lanes.size(); lane++) {
      out_.lanes.push_back({false, lanes_.lanes[lane].thread, kAbsent});
      walk_lane(lanes_, lane, out_.nodes, out_.edges, synced_);
    }
    link_pieces();
    name_callers();
    out_.timeline != nullptr ? add_timeline_work() : add_recorded_work();
    link_threads();
    link_recorded();
    sort();
    find_communication(out_);
    return std::move(out_);
  }

 private:
  Result<void> place_host();
  void cut_at_workers();
  void cut_at_syncs();
  void link_pieces();
  void name_callers();
  void add_timeline_work();
  void add_recorded_work();
  void link_threads();
  void link_recorded();
  void sort();

  Span& span(SpanRef ref) { return lanes_.lanes[ref.lane].spans[ref.span]; }
  SpanRef of_slice(SliceId slice) const {
    const Trace& trace = *out_.timeline;
    for (int level = 0; slice != SliceId::none && level < kDeepestWalk; level++) {
      const SpanRef ref = lanes_.of_slice[static_cast<std::size_t>(slice)];
      if (ref.lane != kNoNode) return ref;
      slice = trace.slices.parent[slice];
    }
    return {};
  }
  // The operator's node that was running at that time.
  std::uint32_t piece_at(SpanRef ref, std::int64_t time_ns) {
    std::uint32_t at = span(ref).first;
    while (next_piece_[at] != kNoNode && out_.nodes[next_piece_[at]].start_ns <= time_ns) at = next_piece_[at];
    return at;
  }
  void add_edge(std::uint32_t from, std::uint32_t to, OpEvidence evidence) {
    if (from != kNoNode && to != kNoNode && from != to) out_.edges.push_back({from, to, evidence});
  }
  std::uint32_t lane_of(std::int64_t device, std::int64_t stream) {
    const auto [found, added] =
        device_lanes_.try_emplace({device, stream}, static_cast<std::uint32_t>(out_.lanes.size()));
    if (added) out_.lanes.push_back({true, stream, device});
    return found->second;
  }
  std::uint32_t add_work(OpNode node, std::uint32_t caller, std::int64_t not_before_ns);
  void add_caller(std::uint32_t node, SpanRef caller) {
    if (caller.lane != kNoNode) out_.nodes[node].caller = span(caller).first;
  }

  OpGraph out_;
  HostLanes lanes_;
  Link link_;
  Dependencies waits_;
  std::vector<SyncEdge> synced_;
  std::vector<std::uint32_t> next_piece_;   // per host node
  std::vector<std::int64_t> order_ns_;      // per node: its start, later where something before it started later
  std::vector<std::uint32_t> node_of_row_;  // per row of the device table
  std::vector<std::pair<SpanRef, SpanRef>> workers_;  // a call, and what it had done on another thread
  std::unordered_map<std::int64_t, std::uint32_t> row_by_id_;
  std::vector<std::uint32_t> work_of_node_;  // per row of the execution trace
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> device_lanes_;
};

Result<void> Builder::place_host() {
  if (out_.graph != nullptr) row_by_id_ = rows_by_id(out_.graph->nodes);
  if (out_.graph == nullptr) {
    lanes_ = timeline_lanes(*out_.timeline);
  } else if (out_.timeline == nullptr) {
    lanes_ = graph_lanes(*out_.graph);
  } else {
    link_ = find_link(*out_.graph, *out_.timeline);
    if (auto enough = covers_enough(link_, *out_.graph, *out_.timeline); !enough) return enough;
    lanes_ = linked_lanes(*out_.graph, *out_.timeline, link_);
  }
  out_.timed = lanes_.timed;
  return {};
}

// An operator whose caller ran on another thread, by record function ids: a worker waited for that call.
void Builder::cut_at_workers() {
  if (out_.graph == nullptr || out_.timeline == nullptr) return;
  const GraphNodes& nodes = out_.graph->nodes;
  for (std::uint32_t node = 0; node < nodes.size(); node++) {
    if (link_.evidence[node] != LinkEvidence::record_function_id || !nodes.parent.has(node)) continue;
    const auto caller = row_by_id_.find(nodes.parent[node]);
    if (caller == row_by_id_.end() || link_.slice[caller->second] == SliceId::none) continue;
    const SpanRef called = lanes_.of_node[node], by = lanes_.of_node[caller->second];
    if (called.lane == by.lane || span(by).start_ns > span(called).start_ns) continue;
    workers_.emplace_back(by, called);
    std::int64_t idle_from_ns = span(called).start_ns;
    if (called.span > 0) {
      idle_from_ns = std::min(idle_from_ns, lanes_.lanes[called.lane].spans[called.span - 1].end_ns);
      add_cut(lanes_.lanes[called.lane], {idle_from_ns, span(called).start_ns, kNoNode, kNoNode});
    }
    // The call is cut too, so that what it did after handing over is not before the work.
    add_cut(lanes_.lanes[by.lane], {span(called).start_ns, span(called).start_ns, kNoNode, kNoNode});
  }
}

void Builder::cut_at_syncs() {
  if (out_.timeline == nullptr) return;
  const Trace& trace = *out_.timeline;
  std::map<TrackId, std::uint32_t> lane_of_track;
  for (std::uint32_t lane = 0; lane < lanes_.lanes.size(); lane++) {
    for (const Span& each : lanes_.lanes[lane].spans) {
      if (each.slice == SliceId::none) continue;
      lane_of_track[trace.slices.track[each.slice]] = lane;
      break;
    }
  }
  for (const Released& released : waits_.released) {
    const auto lane = lane_of_track.find(trace.slices.track[released.call]);
    if (lane == lane_of_track.end()) continue;
    if (out_.graph != nullptr && link_.node_of[released.row] == kNoNode) continue;
    const std::int64_t from_ns = trace.slices.start_ns[released.call];
    const std::int64_t end_ns =
        std::min(trace.slices.end_ns(trace.device.slice[released.row]), trace.slices.end_ns(released.call));
    if (end_ns > from_ns) add_cut(lanes_.lanes[lane->second], {from_ns, end_ns, released.row, kNoNode});
  }
}

void Builder::link_pieces() {
  next_piece_.assign(out_.nodes.size(), kNoNode);
  std::vector<std::uint32_t> last(out_.nodes.size(), kNoNode);  // per first node: the last piece so far
  for (const HostLane& lane : lanes_.lanes) {
    for (const Span& each : lane.spans) last[each.first] = each.first;
  }
  for (std::uint32_t at = 0; at < out_.nodes.size(); at++) {
    const OpNode& node = out_.nodes[at];
    order_ns_.push_back(node.start_ns);
    if (node.piece == 0) continue;
    const SpanRef ref =
        node.node != kNoNode ? lanes_.of_node[node.node] : lanes_.of_slice[static_cast<std::size_t>(node.slice)];
    std::uint32_t& before = last[span(ref).first];
    next_piece_[before] = at;
    before = at;
  }
}

void Builder::name_callers() {
  for (std::uint32_t at = 0; at < out_.nodes.size(); at++) {
    OpNode& node = out_.nodes[at];
    if (node.kind == OpKind::gap) continue;
    if (out_.graph != nullptr && node.node != kNoNode) {
      const GraphNodes& nodes = out_.graph->nodes;
      if (nodes.kind[node.node] == NodeKind::metadata) node.kind = OpKind::metadata;
      if (!nodes.parent.has(node.node)) continue;
      const auto caller = row_by_id_.find(nodes.parent[node.node]);
      if (caller != row_by_id_.end()) add_caller(at, lanes_.of_node[caller->second]);
    } else if (node.slice != SliceId::none) {
      add_caller(at, of_slice(out_.timeline->slices.parent[node.slice]));
    }
  }
}

std::uint32_t Builder::add_work(OpNode node, std::uint32_t caller, std::int64_t not_before_ns) {
  const auto added = static_cast<std::uint32_t>(out_.nodes.size());
  node.on_device = true;
  node.caller = caller;
  if (caller != kNoNode) not_before_ns = std::max(not_before_ns, order_ns_[caller]);
  order_ns_.push_back(std::max(node.start_ns, not_before_ns));
  out_.nodes.push_back(node);
  add_edge(caller, added, OpEvidence::launch);
  return added;
}

void Builder::add_timeline_work() {
  const Trace& trace = *out_.timeline;
  node_of_row_.assign(trace.device.size(), kNoNode);
  for (const std::uint32_t row : waits_.by_start) {
    if (out_.graph != nullptr && link_.node_of[row] == kNoNode) continue;
    const SliceId slice = trace.device.slice[row], launch = trace.device.launch[row];
    OpNode node;
    node.kind = trace.kind(slice) == SliceKind::kernel ? OpKind::compute : OpKind::copy;
    node.lane = lane_of(trace.device.device[row], trace.device.stream[row]);
    node.start_ns = trace.slices.start_ns[slice];
    node.dur_ns = trace.slices.dur_ns[slice];
    node.slice = slice;
    node.row = row;
    const SpanRef around = launch == SliceId::none ? SpanRef{} : of_slice(launch);
    const std::uint32_t caller = around.lane == kNoNode ? kNoNode : piece_at(around, trace.slices.start_ns[launch]);
    std::uint32_t before = waits_.stream_before[row];
    for (int look = 0; before != Dependencies::none && node_of_row_[before] == kNoNode && look < kDeepestWalk; look++)
      before = waits_.stream_before[before];
    const std::uint32_t on_stream = before == Dependencies::none ? kNoNode : node_of_row_[before];
    const std::uint32_t added = add_work(node, caller, on_stream == kNoNode ? INT64_MIN : order_ns_[on_stream]);
    node_of_row_[row] = added;
    add_edge(on_stream, added, OpEvidence::stream_order);
  }
  for (const std::uint32_t row : waits_.by_start) {
    const std::uint32_t event = waits_.event_before[row];
    if (event != Dependencies::none) add_edge(node_of_row_[event], node_of_row_[row], OpEvidence::event_wait);
  }
  for (const SyncEdge& sync : synced_) add_edge(node_of_row_[sync.row], sync.to, OpEvidence::sync_call);
}

// Kernels that a linker wrote into the execution trace.
void Builder::add_recorded_work() {
  const GraphNodes& nodes = out_.graph->nodes;
  work_of_node_.assign(nodes.size(), kNoNode);
  std::vector<std::uint32_t> order;
  for (std::uint32_t node = 0; node < nodes.size(); node++) {
    if (nodes.kind[node] == NodeKind::compute || nodes.kind[node] == NodeKind::memory) order.push_back(node);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return nodes.start_ns[a] < nodes.start_ns[b]; });
  std::map<std::uint32_t, std::uint32_t> last;  // per lane
  for (const std::uint32_t at : order) {
    OpNode node;
    node.kind = nodes.kind[at] == NodeKind::compute ? OpKind::compute : OpKind::copy;
    node.node = at;
    node.lane = lane_of(kAbsent, nodes.stream[at]);
    node.start_ns = std::max<std::int64_t>(nodes.start_ns[at], 0);
    node.dur_ns = std::max<std::int64_t>(nodes.dur_ns[at], 0);
    const auto by = row_by_id_.find(nodes.parent[at]);
    const SpanRef around = by == row_by_id_.end() ? SpanRef{} : lanes_.of_node[by->second];
    const auto before = last.find(node.lane);
    const bool first = before == last.end();
    const std::uint32_t lane = node.lane;
    const std::uint32_t caller = around.lane == kNoNode ? kNoNode : span(around).first;
    const std::uint32_t added = add_work(node, caller, first ? INT64_MIN : order_ns_[before->second]);
    if (!first) add_edge(before->second, added, OpEvidence::stream_order);
    last[lane] = work_of_node_[at] = added;
  }
}

void Builder::link_threads() {
  for (const HandOver& given : lanes_.hand_overs) {
    add_edge(given.given_by, given.taken_by, OpEvidence::hand_over);
    if (given.last.lane != kNoNode) add_edge(span(given.last).last, given.continued, OpEvidence::hand_back);
  }
  for (const ForwardPair& pair : lanes_.pairs) {
    if (pair.forward.lane != pair.backward.lane)
      add_edge(span(pair.forward).last, span(pair.backward).first, OpEvidence::autograd);
  }
  for (const auto& [by, called] : workers_)
    add_edge(piece_at(by, span(called).start_ns - 1), span(called).first, OpEvidence::record_function);
}

// What the execution trace itself says: a linker's dependencies between operators.
void Builder::link_recorded() {
  if (out_.graph == nullptr || out_.graph->nodes.depends_on.size() == 0) return;
  const GraphNodes& nodes = out_.graph->nodes;
  const auto node_of = [&](std::uint32_t row, bool end) {
    if (const SpanRef ref = lanes_.of_node[row]; ref.lane != kNoNode) return end ? span(ref).last : span(ref).first;
    return row < work_of_node_.size() ? work_of_node_[row] : kNoNode;
  };
  for (std::uint32_t row = 0; row < nodes.size(); row++) {
    for (std::uint32_t at = nodes.dependency_begin[row]; at < nodes.dependency_begin[row + 1]; at++) {
      const auto on = row_by_id_.find(nodes.depends_on[at]);
      if (on != row_by_id_.end()) add_edge(node_of(on->second, true), node_of(row, false), OpEvidence::recorded);
    }
  }
}

// By time, so that all edges go forward: what does not is dropped and counted.
void Builder::sort() {
  const auto size = static_cast<std::uint32_t>(out_.nodes.size());
  std::vector<std::uint32_t> order(size), place(size);
  for (std::uint32_t at = 0; at < size; at++) order[at] = at;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return order_ns_[a] < order_ns_[b]; });
  std::vector<OpNode> nodes;
  nodes.reserve(size);
  for (std::uint32_t at = 0; at < size; at++) {
    place[order[at]] = at;
    nodes.push_back(out_.nodes[order[at]]);
  }
  for (std::uint32_t at = 0; at < size; at++) {
    if (nodes[at].caller == kNoNode) continue;
    nodes[at].caller = place[nodes[at].caller];
    if (nodes[at].caller >= at) nodes[at].caller = kNoNode;
  }
  std::vector<OpEdge> edges;
  edges.reserve(out_.edges.size());
  for (OpEdge edge : out_.edges) {
    edge.from = place[edge.from];
    edge.to = place[edge.to];
    if (edge.from < edge.to) {
      edges.push_back(edge);
    } else {
      out_.edges_dropped++;
    }
  }
  const auto key = [](const OpEdge& edge) { return std::pair(edge.to, edge.from); };
  std::stable_sort(edges.begin(), edges.end(), [&](const OpEdge& a, const OpEdge& b) { return key(a) < key(b); });
  edges.erase(std::unique(edges.begin(), edges.end(), [&](auto& a, auto& b) { return key(a) == key(b); }), edges.end());
  for (const OpEdge& edge : edges) out_.edges_by_evidence[static_cast<std::size_t>(edge.evidence)]++;
  out_.nodes = std::move(nodes);
  out_.edges = std::move(edges);
}

}  // namespace

std::string_view to_string(OpEvidence evidence) { return kEvidenceNames[static_cast<std::size_t>(evidence)]; }

std::string_view OpGraph::name(const OpNode& node) const {
  if (node.kind == OpKind::gap) return "host gap";
  if (node.slice != SliceId::none) return timeline->name(node.slice);
  const StringId name = graph->nodes.name[node.node];
  return name == StringId::none ? std::string_view() : graph->strings[name];
}

Result<OpGraph> op_graph(const Trace* graph, const Trace* timeline) {
  if (graph == nullptr && timeline == nullptr) return fail({ErrorKind::internal, "a graph of nothing", {}, {}, {}});
  return Builder(graph, timeline).build();
}

}  // namespace stepscope::graph
