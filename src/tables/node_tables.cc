// Specs of the tables of an execution graph: its nodes and what they wait for.
#include "tables/table_parts.h"

#include <algorithm>

namespace stepscope::tables {
namespace {

Codes kind_of_node() {
  return {[](const Trace& trace, std::size_t row) { return static_cast<std::uint32_t>(trace.nodes.kind[row]); },
          [](const Trace&) { return kNodeKinds; },
          [](const Trace&, std::uint32_t code) { return to_string(static_cast<NodeKind>(code)); }};
}

// The node whose list of dependencies holds entry `row`.
std::int64_t waiting_node(const Trace& trace, std::size_t row) {
  const auto& begin = trace.nodes.dependency_begin;
  const auto* after = std::upper_bound(begin.begin(), begin.end(), static_cast<std::uint32_t>(row));
  return trace.nodes.id[static_cast<std::size_t>(after - begin.begin()) - 1];
}

}  // namespace

TableSpec nodes_table() {
  constexpr auto part = &Trace::nodes;
  return {
      "nodes",
      "Nodes of an execution trace or Chakra file.",
      rows_of<part>,
      {rank_column(),
       {"id", Unit::none, "Id in the file; parent and node_dependencies refer to it.", narrow<part, &GraphNodes::id>()},
       {"name", Unit::none, "Name as recorded.", pooled<part, &GraphNodes::name>()},
       {"kind", Unit::none, "What the node stands for.", kind_of_node()},
       {"parent", Unit::none, "Id of the calling node; null: a root.", narrow<part, &GraphNodes::parent>()},
       {"start_ns", Unit::ns, "Start, where the file says it.", narrow<part, &GraphNodes::start_ns>()},
       {"dur_ns", Unit::ns, "Duration, where the file says it.", narrow<part, &GraphNodes::dur_ns>()},
       {"record_function_id", Unit::none, "Id shared with the operator in the profiler's trace.",
        narrow<part, &GraphNodes::record_function_id>()},
       {"sequence", Unit::none, "Autograd sequence number.", narrow<part, &GraphNodes::sequence>()},
       {"thread", Unit::none, "Thread that ran it.", narrow<part, &GraphNodes::thread>()},
       {"fwd_thread", Unit::none, "Thread that ran the forward op.", narrow<part, &GraphNodes::fwd_thread>()},
       {"stream", Unit::none, "Stream of device work.", narrow<part, &GraphNodes::stream>()},
       {"input_dims", Unit::none, "Shapes of the inputs as JSON text.", pooled<part, &GraphNodes::input_dims>()},
       {"input_types", Unit::none, "Types of the inputs as JSON text.", pooled<part, &GraphNodes::input_types>()},
       {"collective", Unit::none, "Kind of collective as recorded.", pooled<part, &GraphNodes::collective>()},
       {"group_name", Unit::none, "Process group.", pooled<part, &GraphNodes::group_name>()},
       {"comm_bytes", Unit::bytes, "Bytes that it communicates.", narrow<part, &GraphNodes::comm_bytes>()}}};
}

TableSpec node_dependencies_table() {
  return {
      "node_dependencies",
      "What nodes wait for beside their caller.",
      +[](const Trace& trace) { return trace.nodes.depends_on.size(); },
      {rank_column(),
       {"node", Unit::none, "Id of the waiting node.", waiting_node},
       {"depends_on", Unit::none, "Id of the node it waits for.", narrow<&Trace::nodes, &GraphNodes::depends_on>()}}};
}

}  // namespace stepscope::tables
