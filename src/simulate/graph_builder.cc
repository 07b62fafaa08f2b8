#include "simulate/graph_builder.h"

#include <algorithm>
#include <numeric>

#include "model/windows.h"

namespace stepscope::simulate {

GraphBuilder::GraphBuilder(const Run& run) : run_(run) {
  for (const Trace& trace : timelines(run)) {
    lane_of_.emplace_back(trace.tracks.size(), kNone);
    device_.emplace_back(trace.device.size(), kNone);
    main_.push_back(TrackId::none);
  }
}

std::uint32_t GraphBuilder::add_lane(Lane lane) {
  const auto number = static_cast<std::uint32_t>(lanes_.size());
  lane_of_[lane.trace][static_cast<std::size_t>(lane.track)] = number;
  lanes_.push_back(std::move(lane));
  return number;
}

std::uint32_t GraphBuilder::add(const Piece& piece) {
  const auto number = static_cast<std::uint32_t>(pieces_.size());
  pieces_.push_back(piece);
  if (piece.lane == kNone) return number;
  Lane& lane = lanes_[piece.lane];
  lane.nodes.push_back(number);
  if (lane.device) device_[lane.trace][piece.row] = number;
  return number;
}

void GraphBuilder::part_arrival(std::uint32_t number, std::int64_t transfer_ns) {
  Piece& piece = pieces_[number];
  Piece arrival = piece;
  arrival.end_ns = arrival.start_ns;
  arrival.role = NodeRole::arrival;
  piece.start_ns = transfer_ns;
  piece.end_ns = std::max(piece.end_ns, transfer_ns);
  piece.arrival = static_cast<std::uint32_t>(pieces_.size());
  piece.gap_ns = 0;
  piece.own_start = false;
  piece.turn = 2;  // behind the meeting, which may be at the same instant
  lanes_[piece.lane].nodes.push_back(piece.arrival);
  pieces_.push_back(arrival);
}

std::uint32_t GraphBuilder::lane_of(std::size_t trace, TrackId track) const {
  return track == TrackId::none ? kNone : lane_of_[trace][static_cast<std::size_t>(track)];
}

std::uint32_t GraphBuilder::at(std::uint32_t lane, std::int64_t time_ns) const {
  const auto& nodes = lanes_[lane].nodes;
  const auto after = std::upper_bound(nodes.begin(), nodes.end(), time_ns, [&](std::int64_t time, std::uint32_t piece) {
    return time < pieces_[piece].start_ns;
  });
  return after == nodes.begin() ? kNone : *(after - 1);
}

// Sorts the pieces, now on the run's clock, into the order of nodes.
void GraphBuilder::order_by_time(ReplayGraph& graph, std::vector<std::uint32_t>& node_of) {
  for (Piece& piece : pieces_) {
    if (piece.lane == kNone) continue;  // a meeting is on the run's clock already
    const Trace& trace = run_.traces[lanes_[piece.lane].trace];
    piece.start_ns = run_time_ns(trace, piece.start_ns);
    piece.end_ns = std::max(piece.start_ns, run_time_ns(trace, piece.end_ns));
  }
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    const Piece &x = pieces_[a], &y = pieces_[b];
    return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : x.turn < y.turn;
  };
  for (Lane& lane : lanes_) {  // arrivals stand behind all others
    if (!std::is_sorted(lane.nodes.begin(), lane.nodes.end(), earlier)) {
      std::stable_sort(lane.nodes.begin(), lane.nodes.end(), earlier);
    }
  }
  std::vector<std::uint32_t> order(pieces_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), earlier);
  node_of.resize(pieces_.size());
  for (std::uint32_t node = 0; node < order.size(); node++) node_of[order[node]] = node;
  Costs& costs = graph.costs;
  for (const std::uint32_t number : order) {
    const Piece& piece = pieces_[number];
    graph.start_ns.push_back(piece.start_ns);
    graph.lane.push_back(piece.lane);
    graph.role.push_back(piece.role);
    graph.slice.push_back(piece.slice);
    graph.row.push_back(piece.row);
    graph.match.push_back(piece.match);
    costs.cost_ns.push_back(piece.end_ns - piece.start_ns);
    costs.gap_ns.push_back(piece.gap_ns);
  }
  costs.before.assign(order.size(), kNone);
}

// What led to a piece leads to its arrival, where that was parted from it; what began with it begins there.
void GraphBuilder::move_to_arrivals() {
  for (auto& [to, edge] : edges_) {
    if (pieces_[to].arrival != kNone && edge.why != WaitEvidence::collective) to = pieces_[to].arrival;
    if (edge.from_start && pieces_[edge.from].arrival != kNone) edge.from = pieces_[edge.from].arrival;
  }
}

void GraphBuilder::place_edges(ReplayGraph& graph, const std::vector<std::uint32_t>& node_of) const {
  graph.edge_begin.assign(graph.size() + 1, 0);
  const auto forward = [&](const std::pair<std::uint32_t, Edge>& one) {
    return node_of[one.second.from] < node_of[one.first];
  };
  for (const auto& one : edges_) {
    if (forward(one)) {
      graph.edge_begin[node_of[one.first] + 1]++;
    } else {
      graph.against_time++;
    }
  }
  std::partial_sum(graph.edge_begin.begin(), graph.edge_begin.end(), graph.edge_begin.begin());
  graph.edges.resize(graph.edge_begin.back());
  std::vector<std::uint32_t> next(graph.edge_begin.begin(), graph.edge_begin.end() - 1);
  for (const auto& one : edges_) {
    if (!forward(one)) continue;
    Edge& edge = graph.edges[next[node_of[one.first]]++];
    edge = one.second;
    edge.from = node_of[edge.from];
  }
  graph.costs.dropped.assign(graph.edges.size(), 0);
}

ReplayGraph GraphBuilder::finish() {
  ReplayGraph graph;
  std::vector<std::uint32_t> node_of;
  move_to_arrivals();
  order_by_time(graph, node_of);
  for (Lane& lane : lanes_) {
    std::uint32_t before = kNone;
    for (std::uint32_t& node : lane.nodes) {
      const bool own_start = pieces_[node].own_start;
      node = node_of[node];
      if (!own_start && before != kNone) graph.costs.before[node] = before;
      before = node;
    }
  }
  for (auto& rows : device_) {
    for (std::uint32_t& piece : rows) piece = piece == kNone ? kNone : node_of[piece];
  }
  place_edges(graph, node_of);
  graph.lanes = std::move(lanes_);
  graph.device_node = std::move(device_);
  graph.main_track = std::move(main_);

  Costs& costs = graph.costs;  // what neither lane nor edge explains
  costs.wait_ns.assign(graph.size(), 0);
  for (std::size_t node = 0; node < graph.size(); node++) {
    std::int64_t ready = std::numeric_limits<std::int64_t>::min();
    if (const std::uint32_t before = costs.before[node]; before != kNone) {
      ready = graph.end_ns(before) + costs.gap_ns[node];
    }
    for (const Edge& edge : graph.edges_of(node)) {
      ready = std::max(ready, (edge.from_start ? graph.start_ns[edge.from] : graph.end_ns(edge.from)) + edge.lag_ns);
    }
    if (ready != std::numeric_limits<std::int64_t>::min()) costs.wait_ns[node] = graph.start_ns[node] - ready;
  }
  return graph;
}

ReplayGraph replay_graph(const Run& run) {
  GraphBuilder builder(run);
  const std::size_t traces = timelines(run).size();
  for (std::size_t i = 0; i < traces; i++) {
    const Dependencies found = dependencies(run.traces[i]);
    const std::vector<HostWait> waits = add_host_lanes(builder, i, found);
    add_device_lanes(builder, i, found);
    add_host_waits(builder, i, waits);
  }
  add_meetings(builder);
  return builder.finish();
}

}  // namespace stepscope::simulate
