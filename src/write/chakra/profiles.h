// A graph of operations as the nodes of one rank's file, in one of two profiles.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "graph/op_graph.h"
#include "write/chakra/groups.h"
#include "write/chakra/records.h"

namespace stepscope::write::chakra {

// What could not be said in a profile, over all ranks.
struct Losses {
  std::uint64_t without_peer = 0;   // sends and receives whose other rank is not recorded
  std::uint64_t without_bytes = 0;  // communication whose size is not recorded
  std::uint64_t edges_dropped = 0;
  bool untimed = false;
  std::set<std::string> groups;  // digits of those used
};

// Everything: host, device and metadata, callers as control dependencies.
void write_full(const graph::OpGraph& graph, const Groups& groups, Records& records, Losses& losses);

// What ASTRA-sim takes: device compute and communication on one lane each, everything else as delays on the first.
void write_astra(const graph::OpGraph& graph, const Groups& groups, Records& records, Losses& losses);

// Of a node that communicates; the type is compute where the schema has no word for it.
struct CommNode {
  NodeType type = NodeType::compute;
  CommRecord record;
  bool has_peer = false, has_bytes = false;
};
CommNode comm_node(const graph::OpGraph& graph, const graph::OpNode& node, const Groups& groups);

std::int64_t first_start(const graph::OpGraph& graph);

}  // namespace stepscope::write::chakra
