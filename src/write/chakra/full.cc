// Profile full: every node of the graph of operations, ids of the execution trace where it has them.
#include <algorithm>
#include <string>
#include <vector>

#include "write/chakra/profiles.h"

namespace stepscope::write::chakra {
namespace {

using graph::OpGraph;
using graph::OpKind;
using graph::OpNode;

constexpr std::int64_t kLargestId = std::int64_t{1} << 53;  // what JSON's readers keep exactly

// First pieces keep the id that the execution trace gave; all else is numbered behind it.
std::vector<std::uint64_t> ids_of(const OpGraph& graph) {
  std::vector<std::uint64_t> ids(graph.nodes.size(), 0);
  std::uint64_t next = 1;
  const GraphNodes* nodes = graph.graph == nullptr ? nullptr : &graph.graph->nodes;
  for (std::size_t row = 0; nodes != nullptr && row < nodes->size(); row++) {
    if (nodes->id[row] < 1 || nodes->id[row] > kLargestId) nodes = nullptr;
    if (nodes != nullptr) next = std::max(next, static_cast<std::uint64_t>(nodes->id[row]) + 1);
  }
  if (nodes == nullptr) next = 1;
  for (std::size_t at = 0; at < ids.size(); at++) {
    const OpNode& node = graph.nodes[at];
    const bool own = nodes != nullptr && node.piece == 0 && node.node != graph::kNoNode;
    ids[at] = own ? static_cast<std::uint64_t>(nodes->id[node.node]) : next++;
  }
  return ids;
}

class Full {
 public:
  Full(const OpGraph& graph, const Groups& groups, Records& records, Losses& losses)
      : graph_(graph),
        groups_(groups),
        records_(records),
        losses_(losses),
        ids_(ids_of(graph)),
        zero_ns_(first_start(graph)) {
    if (graph.graph == nullptr) return;
    for (const Metadata& said : graph.graph->metadata) {
      if (said.key == "process_groups") groups_said_.push_back("['" + said.json + "']");
    }
  }

  void write() {
    std::vector<WholeMicroseconds> lanes(graph_.lanes.size());
    auto edge = graph_.edges.begin();
    std::vector<std::uint64_t> data;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); at++) {
      data.clear();
      for (; edge != graph_.edges.end() && edge->to == at; ++edge) data.push_back(ids_[edge->from]);
      write_node(at, data, lanes[graph_.nodes[at].lane]);
    }
  }

 private:
  void write_node(std::uint32_t at, const std::vector<std::uint64_t>& data, WholeMicroseconds& lane) {
    const OpNode& node = graph_.nodes[at];
    NodeRecord record;
    record.id = ids_[at];
    record.name = graph_.name(node);
    record.data = data;
    const std::uint64_t caller = node.caller == graph::kNoNode ? 0 : ids_[node.caller];
    if (node.caller != graph::kNoNode) record.control = {&caller, 1};
    record.on_host = !node.on_device;
    if (node.kind == OpKind::metadata) {
      record.type = NodeType::metadata;
      if (next_said_ < groups_said_.size()) record.input_values = groups_said_[next_said_++];
    }
    if (graph_.timed) {
      record.start_ns = node.start_ns - zero_ns_;
      record.start_us = static_cast<std::uint64_t>(record.start_ns) / 1000;
      record.dur_ns = node.dur_ns;
      record.dur_us = lane.of(node.dur_ns);
    }
    const graph::OpLane& of = graph_.lanes[node.lane];
    (of.on_device ? record.stream : record.thread) = of.number;
    say_operator(node, record);
    if (node.communication != graph::kNoNode) say_communication(node, record);
    records_.add(record);
  }

  void say_operator(const OpNode& node, NodeRecord& record) const {
    if (graph_.graph == nullptr || node.node == graph::kNoNode || node.on_device) return;
    const Trace& trace = *graph_.graph;
    const GraphNodes& nodes = trace.nodes;
    record.record_function_id = nodes.record_function_id[node.node];
    record.sequence = nodes.sequence[node.node];
    record.fwd_thread = nodes.fwd_thread[node.node];
    if (node.piece > 0) return;
    const StringId dims = nodes.input_dims[node.node], types = nodes.input_types[node.node];
    if (dims != StringId::none) record.input_shapes = trace.strings[dims];
    if (types != StringId::none) record.input_types = trace.strings[types];
  }

  void say_communication(const OpNode& node, NodeRecord& record) {
    const CommNode comm = comm_node(graph_, node, groups_);
    record.type = comm.type;
    record.comm = comm.record;
    if (comm.type == NodeType::compute) return;
    const bool to_one = comm.type != NodeType::collective;
    losses_.without_peer += to_one && !comm.has_peer ? 1 : 0;
    losses_.without_bytes += comm.has_bytes ? 0 : 1;
    losses_.groups.emplace(comm.record.group);
  }

  const OpGraph& graph_;
  const Groups& groups_;
  Records& records_;
  Losses& losses_;
  std::vector<std::uint64_t> ids_;
  std::int64_t zero_ns_;
  std::vector<std::string> groups_said_;
  std::size_t next_said_ = 0;
};

// CollectiveCommType; nullopt: the schema has none.
std::optional<std::int64_t> type_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return 0;
    case CollectiveKind::reduce: return 1;
    case CollectiveKind::all_gather: return 2;
    case CollectiveKind::gather: return 3;
    case CollectiveKind::scatter: return 4;
    case CollectiveKind::broadcast: return 5;
    case CollectiveKind::all_to_all: return 6;
    case CollectiveKind::reduce_scatter: return 7;
    case CollectiveKind::barrier: return 9;
    default: return std::nullopt;
  }
}

}  // namespace

CommNode comm_node(const OpGraph& graph, const OpNode& node, const Groups& groups) {
  const graph::Communication& said = graph.communications[node.communication];
  CommNode comm;
  comm.has_bytes = said.bytes != kAbsent || said.kind == CollectiveKind::barrier;
  comm.record.bytes = said.bytes == kAbsent ? 0 : said.bytes;
  if (const auto group = groups.number_of.find(said.group); group != groups.number_of.end())
    comm.record.group = group->second;
  if (said.kind == CollectiveKind::send || said.kind == CollectiveKind::receive) {
    const auto narrow = [](std::int64_t number) { return number >= 0 && number <= INT32_MAX; };
    const bool sends = said.kind == CollectiveKind::send;
    comm.type = sends ? NodeType::send : NodeType::receive;
    comm.has_peer = narrow(said.peer) && narrow(graph.rank());
    if (comm.has_peer) {
      (sends ? comm.record.target : comm.record.source) = static_cast<std::int32_t>(said.peer);
      (sends ? comm.record.source : comm.record.target) = static_cast<std::int32_t>(graph.rank());
    }
    if (narrow(said.tag)) comm.record.tag = static_cast<std::int32_t>(said.tag);
  } else if (const auto type = type_of(said.kind)) {
    comm.type = NodeType::collective;
    comm.record.type = *type;
  } else {
    comm.record = {};
  }
  return comm;
}

std::int64_t first_start(const OpGraph& graph) {
  std::int64_t first = INT64_MAX;
  for (const OpNode& node : graph.nodes) first = std::min(first, node.start_ns);
  return graph.nodes.empty() ? 0 : first;
}

void write_full(const OpGraph& graph, const Groups& groups, Records& records, Losses& losses) {
  Full(graph, groups, records, losses).write();
}

}  // namespace stepscope::write::chakra
