// Builds the graph of HTA's critical path from the events of one window: host calls by their call stacks, calls that
// share the runtime's lock, device work by its queue and by events waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compat/hta/critical_path_analysis/graph.h"
#include "compat/hta/table.h"

namespace stepscope::compat::hta {

struct NodePair {
  std::uint32_t start = 0, end = 0;
};

class PathBuilder {
 public:
  // `window`: rows of the table by index: what HTA clips out.
  PathBuilder(const EventTable& table, std::vector<Row> window);

  void build();
  PathGraph graph;

  const Row* row(std::int64_t index) const;  // of the window
  std::optional<NodePair> nodes_of(std::int64_t index) const;
  const EventTable& table() const { return table_; }

 private:
  struct Walk;
  void create_nodes();
  void connect_lock_holders();
  void connect_call_stacks();
  void connect_thread(const std::vector<Row>& rows);
  void enter(const Row& row, std::int64_t parent, Walk& walk);
  void leave(const Row& row, std::int64_t parent, Walk& walk);
  void connect_device();
  void attribute(PathEdge& edge, std::optional<std::int64_t> source_parent);
  bool holds_lock(std::uint32_t node) const;
  bool share_lock(std::uint32_t first, std::uint32_t second) const;

  const EventTable& table_;
  std::vector<Row> window_;  // by index
  std::unordered_map<std::uint32_t, std::uint32_t> row_of_;
  std::unordered_map<std::uint32_t, NodePair> nodes_;
};

// Waits for CUDA events, joined with the launches that they concern.
struct EventWaits {
  // By correlation of cudaEventRecord: index of the last launch before it on the stream that was recorded.
  std::unordered_map<std::int64_t, std::int64_t> launch_before_record;
  // By index of cudaStreamWaitEvent: index of the next launch of its thread on its stream.
  std::unordered_map<std::int64_t, std::int64_t> launch_after_wait;
};
EventWaits find_event_waits(const EventTable& table);

}  // namespace stepscope::compat::hta
