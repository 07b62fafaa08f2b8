// The graph of operations of one rank: what ran, how long it took without what it waited for, and what had to end
// first.
//
// From an execution trace linked with its timeline, from a timeline alone, or from an execution trace alone (its own
// times where a linker wrote some, else no times, which `timed` says). A host operator is one node with its exclusive
// time; where the thread waited inside it (a synchronizing call, another thread's work) it goes on in a further piece,
// so that no piece holds a wait that an edge explains. What the thread did between operators is a gap node. Edges come
// from evidence alone and go from earlier to later nodes, so the graph has no cycle; `edges_dropped` counts those that
// would have gone backwards. Expected: up to some 10^6 nodes; O(n log n).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/link.h"
#include "model/matches.h"
#include "model/trace.h"

namespace stepscope::graph {

enum class OpKind : std::uint8_t {
  host,
  gap,       // a host thread between operators: Python, or what nothing recorded
  metadata,  // says something of the run (process groups)
  compute,   // a kernel
  copy,      // a copy or fill
  collective,
  send,
  receive,
};

// How it is known that one node had to end before another began.
enum class OpEvidence : std::uint8_t {
  program_order,  // the same thread did it before
  launch,         // the operator that launched the work
  stream_order,   // the work before it on its stream
  event_wait,     // its stream waited for an event of another stream
  sync_call,      // the host sat in a synchronizing call until this work had ended
  autograd,       // the backward operator of this forward operator, by sequence number
  hand_over,      // a thread that runs backward operators began while the thread of their forward operators did nothing
  hand_back,      // and that thread went on when they had ended
  record_function,  // a call on one thread whose record function id is that of work on another (gloo's workers)
  recorded,         // the file names it
};
inline constexpr std::size_t kOpEvidences = 10;
std::string_view to_string(OpEvidence evidence);

struct OpNode {
  OpKind kind = OpKind::host;
  bool on_device = false;
  std::uint32_t lane = 0;
  std::uint32_t piece = 0;         // 0: the first of its operator
  std::int64_t start_ns = 0;       // of its first moment
  std::int64_t dur_ns = 0;         // without operators inside and without waits that an edge explains
  std::uint32_t node = kNoNode;    // row of the execution trace's nodes
  SliceId slice = SliceId::none;   // of the timeline
  std::uint32_t row = kNoNode;     // of the timeline's device table
  std::uint32_t caller = kNoNode;  // in OpGraph::nodes, an earlier one
  std::uint32_t communication = kNoNode;
};

struct OpEdge {
  std::uint32_t from = 0, to = 0;  // in OpGraph::nodes; from < to
  OpEvidence evidence = OpEvidence::program_order;
};

struct OpLane {
  bool on_device = false;
  std::int64_t number = kAbsent;  // thread or stream, as the file has it
  std::int64_t device = kAbsent;
};

struct Communication {
  CollectiveKind kind = CollectiveKind::other;
  std::string group;                                            // empty: not recorded
  std::int64_t bytes = kAbsent, peer = kAbsent, tag = kAbsent;  // peer: a rank, numbered as the file does
};

struct OpGraph {
  const Trace* graph = nullptr;     // null: a timeline alone
  const Trace* timeline = nullptr;  // null: an execution trace alone
  bool timed = true;
  std::vector<OpLane> lanes;
  std::vector<OpNode> nodes;  // what has to end first stands first
  std::vector<OpEdge> edges;  // by `to`, then `from`; no pair twice
  std::vector<Communication> communications;
  std::array<std::uint64_t, kOpEvidences> edges_by_evidence{};
  std::uint64_t edges_dropped = 0;

  std::string_view name(const OpNode& node) const;
  std::int64_t rank() const { return (timeline != nullptr ? timeline : graph)->rank.rank; }
};

// At least one of the two. A pair that does not belong together is an error (covers_enough). The traces must outlive
// the graph.
Result<OpGraph> op_graph(const Trace* graph, const Trace* timeline);

}  // namespace stepscope::graph
