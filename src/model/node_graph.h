// Putting the nodes of an execution graph together and looking at whether they make one: ids, callers, cycles.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"

namespace stepscope {

// One node as a reader finds it. Texts are copied into the pool of the trace; empty ones are absent.
struct GraphNode {
  std::int64_t id = kAbsent;
  std::string_view name;
  NodeKind kind = NodeKind::host;
  std::int64_t parent = kAbsent;
  std::int64_t start_ns = kAbsent, dur_ns = kAbsent;
  std::int64_t record_function_id = kAbsent, sequence = kAbsent;
  std::int64_t thread = kAbsent, fwd_thread = kAbsent, stream = kAbsent;
  std::string_view input_dims, input_types, collective, group_name;
  std::int64_t comm_bytes = kAbsent;
  std::uint64_t place = 0;
  std::vector<std::int64_t> depends_on;
};

class NodeGraph {
 public:
  explicit NodeGraph(Trace& trace) : trace_(trace) {}

  // A node without an id or with one that another node has is left out, counted, and told by finish().
  void add(const GraphNode& node);
  // Ends the table: judges callers and dependencies and adds what is wrong with them to the trace's issues.
  void finish();

 private:
  struct Fault {
    std::uint64_t count = 0;
    std::uint64_t place = 0;  // of the first
    std::int64_t node = 0;    // its id
    std::int64_t other = 0;   // the id that it names
  };
  static void note(Fault& fault, std::uint64_t place, std::int64_t node, std::int64_t other);
  void check_references();
  struct Edges;
  static void peel(const Edges& followers, const Edges& before, std::vector<bool>& left);
  void find_cycles(bool callers);
  void nested_collectives();
  void report(const Fault& fault, std::string_view code, Severity severity, std::string_view what, bool names_other);

  Trace& trace_;
  std::unordered_map<std::int64_t, std::uint32_t> row_of_;
  Fault without_id_, same_id_, no_parent_, no_dependency_, caller_cycle_, cycle_;
};

// Rows of the nodes by id.
std::unordered_map<std::int64_t, std::uint32_t> rows_by_id(const GraphNodes& nodes);

// For every node the nodes around it up to a root, 0 for a root; unknown callers end the chain.
std::vector<std::uint32_t> node_depths(const GraphNodes& nodes);

}  // namespace stepscope
