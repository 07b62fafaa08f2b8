// Puts nodes and edges together in any order and makes a ReplayGraph of them: what host_lanes, device_lanes and
// meetings fill, one after the other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "model/leaf_time.h"
#include "simulate/replay_graph.h"

namespace stepscope::simulate {

struct Piece {
  std::int64_t start_ns = 0, end_ns = 0;  // on the clock of its file, until finish()
  std::uint32_t lane = kNone;
  NodeRole role = NodeRole::host;
  SliceId slice = SliceId::none;
  std::uint32_t row = kNone;
  std::uint32_t match = kNone;
  std::int32_t gap_ns = 0;
  std::uint8_t turn = 0;          // of pieces that begin at the same instant: who comes first
  bool own_start = false;         // it may begin without waiting for the piece before it: they overlapped
  std::uint32_t arrival = kNone;  // of communication that others join: the piece that ends when this rank has come
};

// What a piece of a host thread waited for, by what it is; the node of it is known when all lanes are there.
struct HostWait {
  std::uint32_t piece = kNone;
  std::uint32_t row = kNone;      // device work, or
  TrackId track = TrackId::none;  // another thread, up to `time_ns`
  std::int64_t time_ns = 0;
  bool from_start = false;  // row: its start, else its end; track: from `time_ns` on
  WaitEvidence why = WaitEvidence::none;
  bool ends_it = false;  // what the other thread did was over at `time_ns`, whenever that was noted
  bool released = true;  // false: what it waited for as well, and had ended before
};

class GraphBuilder {
 public:
  explicit GraphBuilder(const Run& run);

  // Pieces of a lane are added in the order of their start.
  std::uint32_t add_lane(Lane lane);
  std::uint32_t add(const Piece& piece);
  void add_edge(std::uint32_t to, Edge edge) { edges_.emplace_back(to, edge); }
  // Parts the arrival of a rank from the transfer that `piece` then is, which begins at `transfer_ns` (clock of the
  // file). Afterwards at() is no longer to be asked.
  void part_arrival(std::uint32_t piece, std::int64_t transfer_ns);

  const Run& run() const { return run_; }
  const Trace& trace_of(std::uint32_t piece) const { return run_.traces[lanes_[pieces_[piece].lane].trace]; }
  Piece& piece(std::uint32_t number) { return pieces_[number]; }
  std::vector<Lane>& lanes() { return lanes_; }
  // The lane of a track; kNone: it has none.
  std::uint32_t lane_of(std::size_t trace, TrackId track) const;
  // The piece of a lane that holds `time_ns`, or the last that began before; kNone: the lane had not begun.
  std::uint32_t at(std::uint32_t lane, std::int64_t time_ns) const;
  std::uint32_t device_piece(std::size_t trace, std::uint32_t row) const { return device_[trace][row]; }
  void set_main(std::size_t trace, TrackId track) { main_[trace] = track; }
  TrackId main(std::size_t trace) const { return main_[trace]; }

  ReplayGraph finish();

 private:
  void move_to_arrivals();
  void order_by_time(ReplayGraph& graph, std::vector<std::uint32_t>& node_of);
  void place_edges(ReplayGraph& graph, const std::vector<std::uint32_t>& node_of) const;

  const Run& run_;
  std::vector<Lane> lanes_;
  std::vector<Piece> pieces_;
  std::vector<std::pair<std::uint32_t, Edge>> edges_;
  std::vector<std::vector<std::uint32_t>> lane_of_;  // per trace, per track
  std::vector<std::vector<std::uint32_t>> device_;   // per trace, per row of Trace::device
  std::vector<TrackId> main_;
};

// The parts of replay_graph, in this order.
std::vector<HostWait> add_host_lanes(GraphBuilder& builder, std::size_t trace, const Dependencies& dependencies);
void add_device_lanes(GraphBuilder& builder, std::size_t trace, const Dependencies& dependencies);
void add_host_waits(GraphBuilder& builder, std::size_t trace, const std::vector<HostWait>& waits);
void add_meetings(GraphBuilder& builder);

}  // namespace stepscope::simulate
