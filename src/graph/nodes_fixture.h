// Nodes: an execution trace by hand, node by node. Not part of the program.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "model/node_graph.h"
#include "model/trace.h"

namespace stepscope::graph {

class Nodes {
 public:
  GraphNode& add(std::int64_t id, std::int64_t parent, std::string_view name, NodeKind kind, std::int64_t thread) {
    GraphNode node;
    node.id = id;
    node.parent = parent;
    node.name = names_.emplace_back(name);
    node.kind = kind;
    node.thread = thread;
    return nodes_.emplace_back(node);
  }
  GraphNode& op(std::int64_t id, std::int64_t parent, std::string_view name, std::int64_t thread) {
    return add(id, parent, name, NodeKind::host, thread);
  }
  GraphNode& thread(std::int64_t id, std::int64_t thread) {
    return add(id, 1, "[pytorch|profiler|execution_trace|thread]", NodeKind::thread, thread);
  }

  const Trace& made() {
    if (trace_.nodes.size() > 0) return trace_;
    NodeGraph graph(trace_);
    for (const GraphNode& node : nodes_) graph.add(node);
    graph.finish();
    return trace_;
  }

 private:
  std::deque<std::string> names_;
  std::deque<GraphNode> nodes_;
  Trace trace_;
};

}  // namespace stepscope::graph
