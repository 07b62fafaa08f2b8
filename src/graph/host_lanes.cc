#include "graph/host_lanes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/lookup.h"

namespace stepscope::graph {
namespace {

bool is_host_op(SliceKind kind) { return kind == SliceKind::cpu_op || kind == SliceKind::user_annotation; }

std::vector<std::uint32_t> by_id(const GraphNodes& nodes) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t node = 0; node < nodes.size(); node++) {
    if (is_operator(nodes.kind[node]) || nodes.kind[node] == NodeKind::metadata) order.push_back(node);
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return nodes.id[a] < nodes.id[b]; });
  return order;
}

// Ids are given when calls begin, so they order what the clock cannot.
bool called_before(const GraphNodes* nodes, const Span& a, const Span& b) {
  if (a.start_ns != b.start_ns) return a.start_ns < b.start_ns;
  if (a.node != kNoNode && b.node != kNoNode) return nodes->id[a.node] < nodes->id[b.node];
  return a.end_ns > b.end_ns;
}

void index_spans(HostLanes& all, const Trace* graph, const Trace* timeline) {
  all.of_node.assign(graph == nullptr ? 0 : graph->nodes.size(), {});
  all.of_slice.assign(timeline == nullptr ? 0 : timeline->slices.size(), {});
  for (std::uint32_t lane = 0; lane < all.lanes.size(); lane++) {
    auto& spans = all.lanes[lane].spans;
    std::stable_sort(spans.begin(), spans.end(), [&](const Span& a, const Span& b) {
      return called_before(graph == nullptr ? nullptr : &graph->nodes, a, b);
    });
    for (std::uint32_t at = 0; at < spans.size(); at++) {
      if (spans[at].node != kNoNode) all.of_node[spans[at].node] = {lane, at};
      if (spans[at].slice != SliceId::none) all.of_slice[static_cast<std::size_t>(spans[at].slice)] = {lane, at};
    }
  }
}

// Pairs of forward and backward operators, in the timeline.
void pair_slices(HostLanes& all, const Trace& timeline) {
  for (const Backward& pair : timeline.backward) {
    const SpanRef forward = all.of_slice[static_cast<std::size_t>(pair.forward)];
    const SpanRef backward = all.of_slice[static_cast<std::size_t>(pair.backward)];
    if (forward.lane != kNoNode && backward.lane != kNoNode) all.pairs.push_back({forward, backward});
  }
}

// And in the execution trace: the backward operator has the number of the last forward operator with it, and the thread
// that ran that one.
void pair_nodes(HostLanes& all, const Trace& graph) {
  const GraphNodes& nodes = graph.nodes;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> last;  // thread, sequence number
  for (const std::uint32_t node : by_id(nodes)) {
    if (nodes.sequence[node] < 0) continue;
    if (nodes.fwd_thread[node] <= 0) {
      last[{nodes.thread[node], nodes.sequence[node]}] = node;
    } else if (const auto found = last.find({nodes.fwd_thread[node], nodes.sequence[node]}); found != last.end()) {
      all.pairs.push_back({all.of_node[found->second], all.of_node[node]});
    }
  }
}

HostLanes lanes_of_tracks(const Trace& timeline, const std::vector<std::uint32_t>* node_of) {
  HostLanes all;
  for (std::size_t track = 0; track < timeline.tracks.size(); track++) {
    HostLane lane;
    for (std::uint32_t at = timeline.track_begin[track]; at < timeline.track_begin[track + 1]; at++) {
      const SliceId slice = timeline.by_track[at];
      if (!is_host_op(timeline.kind(slice))) continue;
      const std::uint32_t node = node_of == nullptr ? kNoNode : (*node_of)[static_cast<std::size_t>(slice)];
      if (node_of != nullptr && node == kNoNode) continue;
      lane.spans.push_back(
          {timeline.slices.start_ns[slice], timeline.slices.end_ns(slice), node, slice, kNoNode, kNoNode});
    }
    if (lane.spans.empty()) continue;
    const std::string thread(timeline.strings[timeline.tracks[track].thread]);
    char* end = nullptr;
    const long long number = std::strtoll(thread.c_str(), &end, 10);
    lane.thread = thread.empty() || *end != '\0' ? static_cast<std::int64_t>(track) : number;
    all.lanes.push_back(std::move(lane));
  }
  return all;
}

// Nodes without a slice stand, without a duration, where the next operator of their thread begins.
void place_unlinked(HostLanes& all, const Trace& graph, const Trace& timeline, const Link& link) {
  std::map<TrackId, std::uint32_t> lane_of;
  for (std::uint32_t lane = 0; lane < all.lanes.size(); lane++)
    lane_of[timeline.slices.track[all.lanes[lane].spans.front().slice]] = lane;
  std::map<std::int64_t, SliceId> next;  // per thread of the execution trace
  for (const SliceId slice : link.slice) {
    if (slice != SliceId::none && next.empty()) next[kAbsent] = slice;
  }
  std::vector<std::uint32_t> order = by_id(graph.nodes);
  std::reverse(order.begin(), order.end());
  for (const std::uint32_t node : order) {
    const std::int64_t thread = graph.nodes.thread[node];
    if (link.slice[node] != SliceId::none) {
      next[thread] = link.slice[node];
      continue;
    }
    const auto found = next.contains(thread) ? next.find(thread) : next.begin();
    if (found == next.end()) continue;
    const std::int64_t time_ns = timeline.slices.start_ns[found->second];
    all.lanes[lane_of[timeline.slices.track[found->second]]].spans.push_back(
        {time_ns, time_ns, node, SliceId::none, kNoNode, kNoNode});
  }
}

// Where each span at the top of its lane begins, and all moments at which the lane's operators change.
std::vector<std::uint32_t> top_spans(const HostLane& lane) {
  std::vector<std::uint32_t> top;
  std::int64_t until = INT64_MIN;
  for (std::uint32_t at = 0; at < lane.spans.size(); at++) {
    if (lane.spans[at].start_ns < until) continue;
    top.push_back(at);
    until = lane.spans[at].end_ns;
  }
  return top;
}

std::vector<std::int64_t> changes(const HostLane& lane) {
  std::vector<std::int64_t> times;
  for (const Span& span : lane.spans) {
    times.push_back(span.start_ns);
    times.push_back(span.end_ns);
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Which lane ran the forward operators of most of a lane's backward operators; kNoNode: no other one.
std::vector<std::uint32_t> feeders(const HostLanes& all) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> votes;
  for (const ForwardPair& pair : all.pairs) votes[{pair.backward.lane, pair.forward.lane}]++;
  std::vector<std::uint32_t> feeder(all.lanes.size(), kNoNode);
  std::map<std::uint32_t, std::uint64_t> best;
  for (const auto& [lanes, count] : votes) {
    if (count <= best[lanes.first]) continue;
    best[lanes.first] = count;
    feeder[lanes.first] = lanes.first == lanes.second ? kNoNode : lanes.second;
  }
  return feeder;
}

void hand_over(HostLanes& all, std::uint32_t giver, std::uint32_t taker, std::span<const std::uint32_t> burst,
               std::int64_t idle_from_ns, std::int64_t until_ns) {
  const auto number = static_cast<std::uint32_t>(all.hand_overs.size());
  HandOver given{giver, taker, all.lanes[taker].spans[burst.front()].start_ns, {}, kNoNode, kNoNode, kNoNode};
  const std::int64_t end_ns = all.lanes[taker].spans[burst.back()].end_ns;
  const bool waited = end_ns <= until_ns;
  if (waited) given.last = {taker, burst.back()};
  all.lanes[giver].cuts.push_back({given.start_ns, waited ? end_ns : given.start_ns, kNoNode, number});
  all.lanes[taker].cuts.push_back({idle_from_ns, given.start_ns, kNoNode, number});
  all.hand_overs.push_back(given);
}

class Walk {
 public:
  Walk(HostLanes& all, std::uint32_t lane, std::vector<OpNode>& nodes, std::vector<OpEdge>& edges,
       std::vector<SyncEdge>& synced)
      : all_(all), lane_(all.lanes[lane]), number_(lane), nodes_(nodes), edges_(edges), synced_(synced) {
    std::stable_sort(lane_.cuts.begin(), lane_.cuts.end(),
                     [](const Cut& a, const Cut& b) { return a.to_ns < b.to_ns; });
  }

  void run() {
    std::int64_t now = lane_.spans.empty() ? 0 : lane_.spans.front().start_ns;
    for (std::uint32_t at = 0; at < lane_.spans.size(); at++) {
      const std::int64_t start_ns = lane_.spans[at].start_ns;
      close_until(start_ns, now);
      if (now < start_ns) spend(open_.empty() ? kNoNode : open_.back().span, now, start_ns);
      now = std::max(now, start_ns);
      pass_cuts(start_ns);
      add_node(at, OpKind::host, start_ns);
      std::int64_t end_ns = lane_.spans[at].end_ns;
      if (!open_.empty()) end_ns = std::min(end_ns, open_.back().end_ns);  // what overlaps without nesting is cut
      open_.push_back({at, end_ns});
    }
    close_until(INT64_MAX, now);
  }

 private:
  struct Open {
    std::uint32_t span;
    std::int64_t end_ns;
  };

  void close_until(std::int64_t time_ns, std::int64_t& now) {
    while (!open_.empty() && open_.back().end_ns <= time_ns) {
      if (now < open_.back().end_ns) {
        spend(open_.back().span, now, open_.back().end_ns);
        now = open_.back().end_ns;
      }
      open_.pop_back();
    }
  }

  void pass_cuts(std::int64_t until_ns) {
    while (cut_ < lane_.cuts.size() && lane_.cuts[cut_].to_ns <= until_ns) pass_cut();
  }
  void pass_cut() {
    const Cut& cut = lane_.cuts[cut_];
    if (cut.hand_over != kNoNode && all_.hand_overs[cut.hand_over].giver == number_)
      all_.hand_overs[cut.hand_over].given_by = last_;
    waiting_.push_back(cut_++);
    epoch_++;
  }

  // The lane spent this time in `span` (kNoNode: between operators), but for what it waited.
  void spend(std::uint32_t span, std::int64_t from_ns, std::int64_t to_ns) {
    while (cut_ < lane_.cuts.size() && lane_.cuts[cut_].to_ns <= to_ns) {
      const Cut& cut = lane_.cuts[cut_];
      if (cut.to_ns > from_ns) {
        take(span, from_ns, std::clamp(cut.from_ns, from_ns, cut.to_ns));
        from_ns = cut.to_ns;
      }
      pass_cut();
    }
    if (cut_ < lane_.cuts.size()) to_ns = std::min(to_ns, std::max(from_ns, lane_.cuts[cut_].from_ns));
    take(span, from_ns, to_ns);
  }

  void take(std::uint32_t span, std::int64_t from_ns, std::int64_t to_ns) {
    if (to_ns <= from_ns || !all_.timed) return;
    if (span == kNoNode) {
      add_node(kNoNode, OpKind::gap, from_ns);
      nodes_[last_].dur_ns = to_ns - from_ns;
      return;
    }
    if (epoch_of_[span] != epoch_) add_node(span, OpKind::host, from_ns);
    nodes_[lane_.spans[span].last].dur_ns += to_ns - from_ns;
  }

  void add_node(std::uint32_t span, OpKind kind, std::int64_t start_ns) {
    const auto added = static_cast<std::uint32_t>(nodes_.size());
    OpNode node;
    node.kind = kind;
    node.lane = number_;
    node.start_ns = start_ns;
    if (span != kNoNode) {
      Span& of = lane_.spans[span];
      node.node = of.node;
      node.slice = of.slice;
      node.piece = of.last == kNoNode ? 0 : nodes_[of.last].piece + 1;
      if (of.first == kNoNode) of.first = added;
      of.last = added;
      epoch_of_.resize(lane_.spans.size());
      epoch_of_[span] = epoch_;
    }
    nodes_.push_back(node);
    if (last_ != kNoNode) edges_.push_back({last_, added, OpEvidence::program_order});
    last_ = added;
    for (const std::size_t at : waiting_) end_wait(lane_.cuts[at], added);
    waiting_.clear();
  }

  void end_wait(const Cut& cut, std::uint32_t node) {
    if (cut.row != kNoNode) synced_.push_back({cut.row, node});
    if (cut.hand_over == kNoNode) return;
    HandOver& given = all_.hand_overs[cut.hand_over];
    (given.giver == number_ ? given.continued : given.taken_by) = node;
  }

  HostLanes& all_;
  HostLane& lane_;
  std::uint32_t number_;
  std::vector<OpNode>& nodes_;
  std::vector<OpEdge>& edges_;
  std::vector<SyncEdge>& synced_;
  std::vector<Open> open_;
  std::vector<std::uint32_t> epoch_of_;  // per span: in which its last node was made
  std::vector<std::size_t> waiting_;     // cuts whose next node is not made yet
  std::size_t cut_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint32_t last_ = kNoNode;
};

}  // namespace

HostLanes linked_lanes(const Trace& graph, const Trace& timeline, const Link& link) {
  std::vector<std::uint32_t> node_of(timeline.slices.size(), kNoNode);
  for (std::uint32_t node = 0; node < link.slice.size(); node++) {
    if (link.slice[node] != SliceId::none) node_of[static_cast<std::size_t>(link.slice[node])] = node;
  }
  HostLanes all = lanes_of_tracks(timeline, &node_of);
  place_unlinked(all, graph, timeline, link);
  index_spans(all, &graph, &timeline);
  pair_slices(all, timeline);
  return all;
}

HostLanes timeline_lanes(const Trace& timeline) {
  HostLanes all = lanes_of_tracks(timeline, nullptr);
  index_spans(all, nullptr, &timeline);
  pair_slices(all, timeline);
  return all;
}

HostLanes graph_lanes(const Trace& graph) {
  const GraphNodes& nodes = graph.nodes;
  HostLanes all;
  all.timed = false;
  for (std::size_t node = 0; node < nodes.size(); node++) all.timed |= nodes.start_ns.has(node);
  std::map<std::int64_t, std::vector<std::uint32_t>> by_thread;
  std::vector<std::int64_t> place(nodes.size(), 0);
  std::int64_t number = 0;
  for (const std::uint32_t node : by_id(nodes)) {
    by_thread[nodes.thread[node]].push_back(node);
    place[node] = number++;
  }
  for (const auto& [thread, members] : by_thread) {
    HostLane lane;
    lane.thread = thread;
    std::int64_t next_ns = kAbsent;
    for (auto at = members.rbegin(); at != members.rend(); ++at) {
      const bool has_time = all.timed && nodes.start_ns.has(*at);
      if (has_time) next_ns = nodes.start_ns[*at];
      const std::int64_t start_ns = all.timed ? next_ns : place[*at];
      const std::int64_t dur_ns = has_time ? std::max<std::int64_t>(nodes.dur_ns[*at], 0) : 0;
      lane.spans.push_back({start_ns, start_ns, *at, SliceId::none, kNoNode, kNoNode});
      lane.spans.back().end_ns += start_ns == kAbsent ? 0 : dur_ns;
    }
    const auto first =
        std::find_if(lane.spans.begin(), lane.spans.end(), [](const Span& span) { return span.start_ns != kAbsent; });
    const std::int64_t last_ns = first == lane.spans.end() ? 0 : first->end_ns;  // what has no time stands behind it
    for (Span& span : lane.spans) {
      if (span.start_ns == kAbsent) span.start_ns = span.end_ns = last_ns;
    }
    std::reverse(lane.spans.begin(), lane.spans.end());
    all.lanes.push_back(std::move(lane));
  }
  index_spans(all, &graph, nullptr);
  pair_nodes(all, graph);
  return all;
}

void find_hand_overs(HostLanes& all) {
  const std::vector<std::uint32_t> feeder = feeders(all);
  for (std::uint32_t taker = 0; taker < all.lanes.size(); taker++) {
    if (feeder[taker] == kNoNode) continue;
    const std::vector<std::int64_t> times = changes(all.lanes[feeder[taker]]);
    const std::vector<std::uint32_t> top = top_spans(all.lanes[taker]);
    const auto place = [&](std::uint32_t at) {
      return std::upper_bound(times.begin(), times.end(), all.lanes[taker].spans[at].start_ns) - times.begin();
    };
    for (std::size_t begin = 0, end = 0; begin < top.size(); begin = end) {
      const auto interval = place(top[begin]);
      for (end = begin + 1; end < top.size() && place(top[end]) == interval;) end++;
      if (interval == 0) continue;  // before the other thread's first operator
      const bool last = static_cast<std::size_t>(interval) == times.size();
      const Span& before = all.lanes[taker].spans[top[begin == 0 ? begin : begin - 1]];
      hand_over(all, feeder[taker], taker, std::span(top).subspan(begin, end - begin),
                begin == 0 ? before.start_ns : before.end_ns,
                last ? INT64_MAX : times[static_cast<std::size_t>(interval)]);
    }
  }
}

void add_cut(HostLane& lane, const Cut& cut) { lane.cuts.push_back(cut); }

void walk_lane(HostLanes& lanes, std::uint32_t lane, std::vector<OpNode>& nodes, std::vector<OpEdge>& edges,
               std::vector<SyncEdge>& synced) {
  Walk(lanes, lane, nodes, edges, synced).run();
}

}  // namespace stepscope::graph
