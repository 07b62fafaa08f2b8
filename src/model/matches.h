// What the ranks of a run have to do with each other: one clock for all, and which communication calls are the same
// collective.
//
// Every communication call of every rank is a member of exactly one match; a match with one member is a call whose
// partners are not in the traces that were opened. Rows are read whole, so the tables are vectors of plain rows; a
// match takes 40 bytes and a member 32. Filled by derive_run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  send,  // a send and the receive that belongs to it are one match, of kind send
  receive,
  gather,
  scatter,
  barrier,
  other,
};
inline constexpr std::size_t kCollectiveKinds = 12;

// Calls that can meet each other: a process group; the two ends of a pipe; a stream or thread where nothing is
// recorded.
struct CommLane {
  std::string name;                       // of the process group, or what stands for it
  std::string ranks_text;                 // as recorded
  std::int64_t size = 0;                  // ranks of the group; 0: not recorded
  std::int64_t source = -1, target = -1;  // send and receive with recorded peers
  bool recorded = false;                  // the process group is recorded
};

enum class MatchedBy : std::uint8_t {
  sequence,  // the recorded number in the group
  time,      // order and time on the run's clock
  order,     // order alone
  alone,     // no partner in the traces opened
};
std::string_view to_string(MatchedBy by);

struct Match {
  std::uint32_t lane = 0;
  std::uint32_t first_member = 0;  // members of match m: first_member[m] .. first_member[m + 1]
  std::int64_t bytes = 0;          // by the convention of collective_bytes; kUnknownBytes
  std::int64_t elements = 0;       // of the largest member
  CollectiveKind kind = CollectiveKind::other;
  MatchedBy by = MatchedBy::alone;

  static constexpr std::int64_t kUnknownBytes = -1;
};

struct MatchMember {
  static constexpr std::uint32_t kNone = 0xffffffff;

  std::int64_t start_ns = 0, end_ns = 0;          // on the file's clock: of its kernels, else of the call on the host
  std::uint32_t trace = 0;                        // index into Run::traces
  std::uint32_t collective = MatchMember::kNone;  // row of Trace::collectives, where recorded
  std::uint32_t device_row = MatchMember::kNone;  // first kernel; none: seen on the host only
};

struct Matches {
  std::vector<CommLane> lanes;
  std::vector<Match> rows;           // in order of time; one more at the end closes the last
  std::vector<MatchMember> members;  // by match, then by trace

  std::size_t size() const { return rows.empty() ? 0 : rows.size() - 1; }
  std::span<const MatchMember> of(std::size_t match) const {
    return std::span(members).subspan(rows[match].first_member,
                                      rows[match + 1].first_member - rows[match].first_member);
  }
};

// How the clock of a trace leads to the clock of the run, which is the first trace's.
enum class ClockSource : std::uint8_t {
  reference,    // it is the run's clock
  collectives,  // ends of the collectives that it shares with another trace
  same_host,    // Unix time, of a process of the same host as another trace's
  wall,         // Unix time as recorded
  start,        // nothing links them: both are taken to start at the same moment
};
std::string_view to_string(ClockSource source);

struct TraceClock {
  ClockSource source = ClockSource::start;
  std::int64_t offset_ns = 0;  // run time = time + offset_ns + drift × (time − pivot_ns)
  std::int64_t pivot_ns = 0;
  double drift = 0;
  std::int64_t bound_ns =
      -1;                   // collectives: 9 in 10 shared ends agree as closely; same_host: so do clocks; -1: unknown
  std::uint32_t pairs = 0;  // shared collectives behind it
};

}  // namespace stepscope
