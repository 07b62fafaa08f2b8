// Profile astra: one lane of device compute and delays, one of communication.
//
// ASTRA-sim runs one compute node and one communication of a rank at a time and knows no host. So time in which nothing
// computed becomes a delay, split where a communication began; work that overlapped on several streams counts once.
// A communication follows the piece of the first lane that had ended when it began; a kernel follows the last
// communication that something in the recording says it waited for, and only the time after its end is a delay, so that
// a faster network makes the rank faster.
#include <algorithm>
#include <vector>

#include "write/chakra/profiles.h"

namespace stepscope::write::chakra {
namespace {

using graph::kNoNode;
using graph::OpGraph;
using graph::OpNode;

bool communicates(const OpNode& node) { return node.communication != kNoNode; }
std::int64_t end_of(const OpNode& node) { return node.start_ns + node.dur_ns; }

// Per node: the communication that ended last of all that it waited for, through whatever was between; or kNoNode.
std::vector<std::uint32_t> waited_for(const OpGraph& graph) {
  std::vector<std::uint32_t> waited(graph.nodes.size(), kNoNode);
  for (const graph::OpEdge& edge : graph.edges) {  // by `to`, so all before `from` are settled
    const OpNode& from = graph.nodes[edge.from];
    const std::uint32_t found = communicates(from) ? edge.from : waited[edge.from];
    std::uint32_t& known = waited[edge.to];
    if (found == kNoNode) continue;
    if (known == kNoNode || end_of(graph.nodes[found]) > end_of(graph.nodes[known])) known = found;
  }
  return waited;
}

class Astra {
 public:
  Astra(const OpGraph& graph, const Groups& groups, Records& records, Losses& losses)
      : graph_(graph),
        groups_(groups),
        records_(records),
        losses_(losses),
        waited_(waited_for(graph)),
        written_(graph.nodes.size(), 0),
        zero_ns_(first_start(graph)) {
    lane_end_ns_ = zero_ns_;
  }

  void write() {
    std::int64_t end_ns = zero_ns_;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); at++) {
      const OpNode& node = graph_.nodes[at];
      end_ns = std::max(end_ns, end_of(node));
      if (communicates(node) && write_communication(at)) continue;
      if (node.on_device || communicates(node)) write_work(at);
    }
    delay_until(end_ns);
  }

 private:
  // Time of the first lane up to now in which no kernel ran.
  void delay_until(std::int64_t time_ns) {
    if (time_ns <= lane_end_ns_) return;
    add_to_lane("host delay", lane_end_ns_, time_ns - lane_end_ns_, 0);
    lane_end_ns_ = time_ns;
  }

  void add_to_lane(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns, std::uint64_t after) {
    NodeRecord record = begin(name, start_ns, dur_ns);
    record.dur_us = lane_.of(dur_ns);
    std::uint64_t data[2];
    std::size_t count = 0;
    if (last_on_lane_ != 0) data[count++] = last_on_lane_;
    if (after != 0) data[count++] = after;
    record.data = {data, count};
    records_.add(record);
    last_on_lane_ = record.id;
    on_lane_.push_back({start_ns + dur_ns, record.id});
  }

  // The last node of the first lane that had ended by then; 0: none had.
  std::uint64_t ended_by(std::int64_t time_ns) const {
    const auto after = std::upper_bound(on_lane_.begin(), on_lane_.end(), time_ns,
                                        [](std::int64_t time, const Ended& ended) { return time < ended.end_ns; });
    return after == on_lane_.begin() ? 0 : (after - 1)->id;
  }

  NodeRecord begin(std::string_view name, std::int64_t start_ns, std::int64_t dur_ns) {
    NodeRecord record;
    record.id = next_id_++;
    record.name = name;
    record.start_ns = std::max<std::int64_t>(start_ns - zero_ns_, 0);
    record.start_us = static_cast<std::uint64_t>(record.start_ns) / 1000;
    record.dur_ns = dur_ns;
    return record;
  }

  void write_work(std::uint32_t at) {
    const OpNode& node = graph_.nodes[at];
    const std::uint32_t waited = waited_[at];
    std::uint64_t after = 0;
    if (waited != kNoNode && written_[waited] > newest_waited_) {
      after = newest_waited_ = written_[waited];
      lane_end_ns_ = std::max(lane_end_ns_, std::min(end_of(graph_.nodes[waited]), node.start_ns));
    }
    if (node.start_ns > lane_end_ns_) {
      add_to_lane("host delay", lane_end_ns_, node.start_ns - lane_end_ns_, after);
      after = 0;
      lane_end_ns_ = node.start_ns;
    }
    const std::int64_t end_ns = std::max(end_of(node), lane_end_ns_);
    add_to_lane(graph_.name(node), lane_end_ns_, end_ns - lane_end_ns_, after);
    lane_end_ns_ = end_ns;
  }

  // False where the file cannot say it: then it is work that takes its time.
  bool write_communication(std::uint32_t at) {
    const OpNode& node = graph_.nodes[at];
    CommNode comm = comm_node(graph_, node, groups_);
    if (comm.type == NodeType::compute) return false;
    const bool lacks_peer = comm.type != NodeType::collective && !comm.has_peer;
    losses_.without_peer += lacks_peer ? 1 : 0;
    losses_.without_bytes += comm.has_bytes ? 0 : 1;
    if (lacks_peer || !comm.has_bytes) return false;
    losses_.groups.emplace(comm.record.group);
    replace_unknown_type(comm.record);
    delay_until(node.start_ns);
    NodeRecord record = begin(graph_.name(node), node.start_ns, node.dur_ns);
    record.dur_us = comm_lane_.of(node.dur_ns);
    record.type = comm.type;
    record.comm = comm.record;
    std::uint64_t data[2];
    std::size_t count = 0;
    if (last_communication_ != 0) data[count++] = last_communication_;
    if (const std::uint64_t before = ended_by(node.start_ns); before != 0) data[count++] = before;
    record.data = {data, count};
    records_.add(record);
    last_communication_ = written_[at] = record.id;
    return true;
  }

  // ASTRA-sim knows all-reduce, all-gather, all-to-all, reduce-scatter and (at its recorded time) broadcast.
  static void replace_unknown_type(CommRecord& record) {
    constexpr std::int64_t all_reduce = 0, reduce = 1, gather = 3, scatter = 4, barrier = 9;
    if (record.type == barrier) record.bytes = std::max<std::int64_t>(record.bytes, 1);
    if (record.type == reduce || record.type == gather || record.type == scatter || record.type == barrier)
      record.type = all_reduce;
  }

  struct Ended {
    std::int64_t end_ns;
    std::uint64_t id;
  };

  const OpGraph& graph_;
  const Groups& groups_;
  Records& records_;
  Losses& losses_;
  std::vector<Ended> on_lane_;  // by end
  std::vector<std::uint32_t> waited_;
  std::vector<std::uint64_t> written_;  // per node: its id, where it was written as communication
  std::int64_t zero_ns_, lane_end_ns_ = 0;
  WholeMicroseconds lane_, comm_lane_;
  std::uint64_t next_id_ = 1, last_on_lane_ = 0, last_communication_ = 0, newest_waited_ = 0;
};

}  // namespace

void write_astra(const OpGraph& graph, const Groups& groups, Records& records, Losses& losses) {
  Astra(graph, groups, records, losses).write();
}

}  // namespace stepscope::write::chakra
