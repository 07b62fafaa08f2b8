// What the communication nodes of a graph of operations move: kind, group, bytes, peers and tags.
// An internal part of op_graph.
#pragma once

#include "graph/host_lanes.h"
#include "graph/op_graph.h"

namespace stepscope::graph {

// Finds the nodes that communicate, gives them their kind and adds their rows to `graph.communications`. A call whose
// kernel is in the graph stays an operator: the kernel is what communicates. Takes the caller's of nodes as they are.
void find_communication(OpGraph& graph);

}  // namespace stepscope::graph
