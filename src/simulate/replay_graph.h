// ReplayGraph: what every rank of a run did, as one dependency graph that can be played again.
//
// Nodes are pieces of host threads (leaf time, gaps included), pieces of device work, and the moments at which the
// ranks of a collective meet. A node begins when what is before it on its lane has ended and what its edges name has
// happened, plus what nothing in the recording explains (`wait_ns`). So playing the graph as it was recorded gives the
// recording, whatever is missing in it: the honest measure of the graph is the time in `wait_ns`.
//
// Expected workload: 10^5 to 10^7 nodes, built once, played for each change. Nodes stand in an order in which every
// edge leads forward: structs of arrays, times int64 ns on the run's clock.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "model/dependencies.h"
#include "model/trace.h"

namespace stepscope::simulate {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// One host thread or one stream of one rank.
struct Lane {
  std::uint32_t trace = 0;  // index into Run::traces
  TrackId track = TrackId::none;
  bool device = false;
  bool waits = false;                // between two nodes it waits for work; else it was busy with what is not recorded
  std::vector<std::uint32_t> nodes;  // in order
};

enum class NodeRole : std::uint8_t {
  host,         // a piece of a host thread
  data_loader,  // such a piece, in the data loader
  launch,       // such a piece, in a call that launches work
  device,       // device work
  communicate,  // communication: device work, or a host thread that communicates
  arrival,      // a rank has come to a collective that others join: no length, before its communication
  meeting,      // all ranks of a collective have come: no lane, no length
};

struct Edge {
  std::uint32_t from = kNone;
  std::int32_t lag_ns = 0;
  WaitEvidence why = WaitEvidence::none;
  bool from_start = false;  // of `from`, else from its end
};

// What a change may alter; a copy of the graph's own is played for each.
struct Costs {
  std::vector<std::int64_t> cost_ns;  // per node: how long it lasts
  std::vector<std::int64_t> wait_ns;  // per node: before it, explained by nothing
  std::vector<std::int32_t> gap_ns;   // per node: at least so long after the node before it on its lane
  std::vector<std::uint32_t> before;  // per node: that node, or kNone
  std::vector<std::uint8_t> dropped;  // per edge: 1 where it no longer holds
};

struct ReplayGraph {
  std::vector<Lane> lanes;
  // per node
  std::vector<std::int64_t> start_ns;  // as recorded
  std::vector<std::uint32_t> lane;     // kNone: a meeting
  std::vector<NodeRole> role;
  std::vector<SliceId> slice;             // none: a gap, or a meeting
  std::vector<std::uint32_t> row;         // of Trace::device, or of Matches where it is a meeting; kNone
  std::vector<std::uint32_t> match;       // of Run::matches, of what communicates; kNone
  std::vector<std::uint32_t> edge_begin;  // edges of node n: edges[edge_begin[n] .. edge_begin[n + 1])
  std::vector<Edge> edges;
  Costs costs;
  // per trace: node of a row of Trace::device, or kNone
  std::vector<std::vector<std::uint32_t>> device_node;
  std::vector<TrackId> main_track;  // per trace: the thread of its steps, else the one with most slices
  std::uint64_t against_time = 0;   // edges left out since they led back in time: clocks that disagree

  std::size_t size() const { return start_ns.size(); }
  std::span<const Edge> edges_of(std::size_t node) const {
    return std::span(edges).subspan(edge_begin[node], edge_begin[node + 1] - edge_begin[node]);
  }
  std::int64_t end_ns(std::size_t node) const { return start_ns[node] + costs.cost_ns[node]; }
};

// Of the timelines of a derived run. O(nodes log nodes).
ReplayGraph replay_graph(const Run& run);

}  // namespace stepscope::simulate
