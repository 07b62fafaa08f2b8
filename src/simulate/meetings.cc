// Collectives: the moment at which the last rank has come, and the transfer after it on every rank.
#include <algorithm>
#include <unordered_map>

#include "model/match_times.h"
#include "model/windows.h"
#include "simulate/graph_builder.h"

namespace stepscope::simulate {
namespace {

// Ends of the same collective agree to some microseconds: so much later than the last arrival a transfer may begin.
constexpr std::int64_t kClockSlackNs = 50'000;

using Places = std::unordered_map<std::int64_t, std::uint32_t>;  // start → piece that communicates on the host

// Per trace: where host threads communicate; of calls of one length and start one is as good as the other.
std::vector<Places> host_places(GraphBuilder& builder, std::size_t traces) {
  std::vector<Places> places(traces);
  for (const Lane& lane : builder.lanes()) {
    if (lane.device) continue;
    for (const std::uint32_t number : lane.nodes) {
      const Piece& piece = builder.piece(number);
      if (piece.role == NodeRole::communicate) places[lane.trace].emplace(piece.start_ns, number);
    }
  }
  return places;
}

}  // namespace

void add_meetings(GraphBuilder& builder) {
  const Run& run = builder.run();
  const std::size_t traces = timelines(run).size();
  const std::vector<Places> places = host_places(builder, traces);
  const auto piece_of = [&](const MatchMember& member) {
    if (member.trace >= traces) return kNone;
    if (member.device_row != MatchMember::kNone) return builder.device_piece(member.trace, member.device_row);
    const auto found = places[member.trace].find(member.start_ns);
    return found == places[member.trace].end() ? kNone : found->second;
  };
  for (std::uint32_t match = 0; match < run.matches.size(); match++) {
    const auto members = run.matches.of(match);
    const MatchTime time = match_time(run, match);
    std::vector<std::uint32_t> pieces;
    bool fitted = true;
    for (const MatchMember& member : members) {
      const std::uint32_t piece = piece_of(member);
      const Trace& trace = run.traces[member.trace];
      // of calls that began at once on two threads only one has its place
      fitted = fitted && piece != kNone && builder.piece(piece).arrival == kNone &&
               (pieces.empty() || pieces.back() != piece) && clock_is_fitted(trace) &&
               run_time_ns(trace, builder.piece(piece).end_ns) >= time.last_arrival_ns;
      if (piece != kNone) builder.piece(piece).match = match;
      pieces.push_back(piece);
    }
    // Where the clocks do not fit, a rank may seem to leave before another has come: each keeps its own times.
    if (!fitted || members.size() < 2 || !synchronizes(run.matches.rows[match].kind)) continue;
    const std::uint32_t meeting = builder.add({.start_ns = time.last_arrival_ns,
                                               .end_ns = time.last_arrival_ns,
                                               .role = NodeRole::meeting,
                                               .row = match,
                                               .match = match,
                                               .turn = 1});
    for (std::size_t i = 0; i < pieces.size(); i++) {
      const Trace& trace = run.traces[members[i].trace];
      const Piece& piece = builder.piece(pieces[i]);
      const std::int64_t come = run_time_ns(trace, piece.start_ns);
      // A device ends when all do. A thread ends when the scheduler lets it: what it takes is its own.
      const bool on_host = members[i].device_row == MatchMember::kNone;
      const std::int64_t begun = on_host
                                     ? time.last_arrival_ns
                                     : run_time_ns(trace, std::max(piece.end_ns - time.transfer_ns, piece.start_ns));
      const std::int64_t rounded = trace.clock.drift != 0 ? 1 : 0;  // never before the meeting
      const std::int64_t transfer = std::max(begun, time.last_arrival_ns) + rounded;
      builder.part_arrival(pieces[i], piece.start_ns + (transfer - come));
      const std::int64_t lag = std::min(transfer - time.last_arrival_ns, kClockSlackNs);
      const std::uint32_t arrival = builder.piece(pieces[i]).arrival;
      builder.add_edge(meeting, {.from = arrival, .why = WaitEvidence::collective});
      builder.add_edge(pieces[i],
                       {.from = meeting, .lag_ns = static_cast<std::int32_t>(lag), .why = WaitEvidence::collective});
    }
  }
}

}  // namespace stepscope::simulate
