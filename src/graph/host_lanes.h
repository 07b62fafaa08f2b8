// The host threads of a graph of operations: their operators as spans of time, and the walk that turns spans into
// nodes. An internal part of op_graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/op_graph.h"

namespace stepscope::graph {

struct Span {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t node = kNoNode;
  SliceId slice = SliceId::none;
  std::uint32_t first = kNoNode, last = kNoNode;  // its nodes, once it was walked
};

// Until `to_ns` the thread waited, from `from_ns` on where it had something else to do before.
struct Cut {
  std::int64_t from_ns = 0, to_ns = 0;
  std::uint32_t row = kNoNode;        // device work that it waited for
  std::uint32_t hand_over = kNoNode;  // see HandOver
};

struct HostLane {
  std::int64_t thread = kAbsent;
  std::vector<Span> spans;  // by start; what is called after what calls it
  std::vector<Cut> cuts;    // by end
};

struct SpanRef {
  std::uint32_t lane = kNoNode, span = kNoNode;
};

// One thread worked for another that meanwhile did nothing.
struct HandOver {
  std::uint32_t giver = kNoNode, taker = kNoNode;  // lanes
  std::int64_t start_ns = 0;                       // of the taker's first operator
  SpanRef last;                       // the taker's last operator, where the giver went on after it; else none
  std::uint32_t given_by = kNoNode;   // node of the giver, once walked
  std::uint32_t taken_by = kNoNode;   // first node of the taker
  std::uint32_t continued = kNoNode;  // the giver's node after the wait
};

struct ForwardPair {
  SpanRef forward, backward;
};

struct HostLanes {
  bool timed = true;
  std::vector<HostLane> lanes;
  std::vector<ForwardPair> pairs;
  std::vector<HandOver> hand_overs;
  std::vector<SpanRef> of_node;   // per node of the execution trace
  std::vector<SpanRef> of_slice;  // per slice of the timeline
};

HostLanes linked_lanes(const Trace& graph, const Trace& timeline, const Link& link);
HostLanes timeline_lanes(const Trace& timeline);
// Of the file's own times; without any, places in the order of ids stand for times.
HostLanes graph_lanes(const Trace& graph);

// Finds where one thread worked for another (autograd's threads by their pairs), and makes the cuts for it.
void find_hand_overs(HostLanes& lanes);

// What a released host call waited for; see Dependencies.
void add_cut(HostLane& lane, const Cut& cut);

struct SyncEdge {
  std::uint32_t row = 0, to = 0;
};
// Adds the nodes and program-order edges of one lane. Spans learn their nodes; hand-overs theirs.
void walk_lane(HostLanes& lanes, std::uint32_t lane, std::vector<OpNode>& nodes, std::vector<OpEdge>& edges,
               std::vector<SyncEdge>& synced);

}  // namespace stepscope::graph
