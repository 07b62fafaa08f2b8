// Host threads as lanes: their leaf time piece by piece, cut where the thread waited for something that is known.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "model/host_names.h"
#include "model/match_times.h"
#include "simulate/graph_builder.h"

namespace stepscope::simulate {
namespace {

// What a call costs the host before it begins to wait.
constexpr std::int64_t kCallNs = 5'000;
// The host polls for device work where it does nothing for so long, began to soon after launching it, and goes on about
// when it ends, to within this part of the wait (as the critical path has it).
constexpr std::int64_t kShortestPollNs = 200'000, kPollBeginsNs = 50'000, kPollPrecision = 20;
// A wait for another thread is at least so long: shorter gaps are Python's own.
constexpr std::int64_t kShortestWaitNs = 20'000;
// Waking a thread takes some microseconds; what is longer is not explained by the edge.
constexpr std::int64_t kWakeNs = 50'000;
// A call that communicates tells the thread that waits for it so long before it itself ends.
constexpr std::int64_t kToldEarlyNs = 200'000;
// On a machine without a core to spare it notes its own end so late: a thread's turn on a core takes milliseconds.
constexpr std::int64_t kNotedLateNs = 20'000'000;
// A launch call so long, with so many launches pending, waited for room in the queue.
constexpr std::int64_t kSlowLaunchNs = 50'000;
constexpr std::size_t kFullQueue = 256, kLongestQueue = 1 << 14;
// So much work that ended while a call waited for the device is looked at.
constexpr int kLook = 4096;

NodeRole role_of(HostWork work) {
  switch (work) {
    case HostWork::data_loader: return NodeRole::data_loader;
    case HostWork::launch: return NodeRole::launch;
    case HostWork::communication: return NodeRole::communicate;
    default: return NodeRole::host;
  }
}

TrackId busiest_track(const Trace& trace) {
  TrackId most = TrackId::none;
  std::uint32_t slices = 0;
  for (std::size_t t = 0; t < trace.tracks.size(); t++) {
    const std::uint32_t here = trace.track_begin[t + 1] - trace.track_begin[t];
    if (trace.tracks[t].device || here <= slices) continue;
    most = static_cast<TrackId>(t);
    slices = here;
  }
  return most;
}

// A piece in which its thread waited: it worked until `own_until`, and went on at `released`.
struct Cut {
  std::int64_t own_until = 0, released = 0;
  HostWait wait;
  std::vector<std::uint32_t> also = {};  // device work that it waited for as well, which ended earlier
};

class HostLanes {
 public:
  HostLanes(GraphBuilder& builder, std::size_t trace, const Dependencies& edges)
      : builder_(builder), number_(trace), trace_(builder.run().traces[trace]), edges_(edges), leaves_(trace_) {
    for (const std::uint32_t row : edges_.by_start) {
      starts_.push_back(trace_.slices.start_ns[trace_.device.slice[row]]);
    }
  }

  std::vector<HostWait> take() {
    find_tracks();
    find_requests();
    find_last_arrivals();
    for (std::size_t t = 0; t < trace_.tracks.size(); t++) {
      if (!trace_.tracks[t].device) add_track(static_cast<TrackId>(t));
    }
    return std::move(waits_);
  }

 private:
  std::int64_t start(std::uint32_t row) const { return trace_.slices.start_ns[trace_.device.slice[row]]; }
  std::int64_t end(std::uint32_t row) const { return trace_.slices.end_ns(trace_.device.slice[row]); }

  void find_tracks();
  bool only_communicates(std::size_t track) const;
  void find_requests();
  void add_track(TrackId track);
  bool is_own(const Leaf& leaf, std::int64_t end_ns) const;
  void add_piece(const Leaf& leaf, std::int64_t end_ns);
  std::optional<Cut> wait_of(const Leaf& leaf, std::int64_t end_ns) const;
  std::optional<Cut> released(const Leaf& leaf, std::int64_t end_ns) const;
  std::vector<std::uint32_t> others_waited_for(const Leaf& leaf, std::uint32_t row) const;
  std::optional<Cut> queued(const Leaf& leaf, std::int64_t end_ns) const;
  std::optional<Cut> polled(const Leaf& leaf, std::int64_t end_ns) const;
  std::optional<Cut> gave_way(const Leaf& leaf, std::int64_t end_ns) const;
  std::optional<Cut> joined(const Leaf& leaf, std::int64_t end_ns) const;
  SliceId noted_late(const Leaf& leaf, std::int64_t end_ns) const;
  void find_last_arrivals();
  void took_over(std::uint32_t piece, const Leaf& leaf);

  GraphBuilder& builder_;
  std::size_t number_;
  const Trace& trace_;
  const Dependencies& edges_;
  mutable LeafTimes leaves_;
  std::vector<std::int64_t> starts_;           // of edges_.by_start
  std::vector<std::vector<TrackId>> workers_;  // per track: the threads that work for it
  std::vector<TrackId> master_;                // per track: the thread that it works for, or none
  std::vector<WaitEvidence> why_;              // per track: how that shows
  std::vector<SliceId> requests_, served_;     // calls that ask for communication, and those that do it, by start
  std::vector<SliceId> served_by_end_;
  std::unordered_map<SliceId, std::int64_t> last_arrival_ns_;  // of those that do it: when all ranks had come
  TrackId track_ = TrackId::none;
  std::uint32_t lane_ = kNone;
  std::vector<HostWait> waits_;
};

// Threads that run backward operators work for those that ran the forward ones; those that only communicate, for the
// thread of the steps.
void HostLanes::find_tracks() {
  TrackId main = TrackId::none;
  for (const Step& step : trace_.steps) {
    if (step.track != TrackId::none) main = step.track;
  }
  if (main == TrackId::none) main = busiest_track(trace_);
  builder_.set_main(number_, main);
  master_ = edges_.feeder;
  why_.assign(trace_.tracks.size(), WaitEvidence::autograd);
  workers_.resize(trace_.tracks.size());
  for (std::size_t t = 0; t < trace_.tracks.size(); t++) {
    const auto track = static_cast<TrackId>(t);
    if (trace_.tracks[t].device || track == main) continue;
    if (only_communicates(t)) {
      master_[t] = main;
      why_[t] = WaitEvidence::worker;
    }
    if (master_[t] != TrackId::none) workers_[static_cast<std::size_t>(master_[t])].push_back(track);
  }
}

bool HostLanes::only_communicates(std::size_t track) const {
  for (std::uint32_t i = trace_.track_begin[track]; i < trace_.track_begin[track + 1]; i++) {
    const SliceId slice = trace_.by_track[i];
    if (trace_.slices.depth[slice] == 0 && !is_host_communication(trace_.name(slice))) return false;
  }
  return trace_.track_begin[track] < trace_.track_begin[track + 1];
}

// Threads that communicate take their work in the order in which it was asked for. What they do first in a recording
// may have been asked for before it.
void HostLanes::find_requests() {
  std::vector<SliceId> asked;
  for (std::size_t t = 0; t < trace_.tracks.size(); t++) {
    const bool serves = why_[t] == WaitEvidence::worker;
    for (std::uint32_t i = trace_.track_begin[t]; i < trace_.track_begin[t + 1]; i++) {
      const SliceId slice = trace_.by_track[i];
      if (serves && trace_.slices.depth[slice] == 0) served_.push_back(slice);
      if (!serves && !trace_.tracks[t].device && trace_.name(slice).starts_with("c10d::")) asked.push_back(slice);
    }
  }
  const auto earlier = [&](SliceId a, SliceId b) { return trace_.slices.start_ns[a] < trace_.slices.start_ns[b]; };
  std::stable_sort(asked.begin(), asked.end(), earlier);
  std::stable_sort(served_.begin(), served_.end(), earlier);
  served_by_end_ = served_;
  std::stable_sort(served_by_end_.begin(), served_by_end_.end(),
                   [&](SliceId a, SliceId b) { return trace_.slices.end_ns(a) < trace_.slices.end_ns(b); });
  std::size_t next = 0;
  for (const SliceId slice : served_) {
    const bool known = next < asked.size() && earlier(asked[next], slice);
    requests_.push_back(known ? asked[next] : SliceId::none);
    if (known) next++;
  }
}

void HostLanes::find_last_arrivals() {
  const Run& run = builder_.run();
  std::unordered_map<std::int64_t, SliceId> by_start;
  for (const SliceId slice : served_) by_start.emplace(trace_.slices.start_ns[slice], slice);
  for (std::size_t match = 0; match < run.matches.size() && !by_start.empty(); match++) {
    const auto members = run.matches.of(match);
    if (members.size() < 2 || !synchronizes(run.matches.rows[match].kind)) continue;
    auto own = std::lower_bound(members.begin(), members.end(), number_,
                                [](const MatchMember& one, std::size_t number) { return one.trace < number; });
    for (; own != members.end() && own->trace == number_; ++own) {
      const auto found = by_start.find(own->start_ns);
      if (own->device_row != MatchMember::kNone || found == by_start.end()) continue;
      const std::int64_t from_run_ns = own->start_ns - run_time_ns(trace_, own->start_ns);
      last_arrival_ns_[found->second] = match_time(run, match).last_arrival_ns + from_run_ns;
    }
  }
}

void HostLanes::add_track(TrackId track) {
  const LeafTime& time = leaves_.of(track);
  if (time.pieces.empty()) return;
  const auto t = static_cast<std::size_t>(track);
  track_ = track;
  const bool waits = master_[t] != TrackId::none;
  lane_ = builder_.add_lane({.trace = static_cast<std::uint32_t>(number_), .track = track, .waits = waits});
  for (std::size_t i = 0; i + 1 < time.pieces.size(); i++) {
    const Leaf& leaf = time.pieces[i];
    if (waits && leaf.work == HostWork::nothing && !is_own(leaf, time.pieces[i + 1].start_ns)) continue;
    add_piece(leaf, time.pieces[i + 1].start_ns);
  }
}

// In a gap in which the thread that it works for did nothing either, there was nobody to wait for: it did something
// that is not recorded.
bool HostLanes::is_own(const Leaf& leaf, std::int64_t end_ns) const {
  const auto t = static_cast<std::size_t>(track_);
  if (why_[t] == WaitEvidence::worker) return false;
  const std::int64_t active = leaves_.of(master_[t]).last_active(end_ns);
  return active != kAbsent && active <= leaf.start_ns;
}

void HostLanes::add_piece(const Leaf& leaf, std::int64_t end_ns) {
  Piece piece{
      .start_ns = leaf.start_ns, .end_ns = end_ns, .lane = lane_, .role = role_of(leaf.work), .slice = leaf.slice};
  const auto& nodes = builder_.lanes()[lane_].nodes;
  const bool after_gap = nodes.empty() || builder_.piece(nodes.back()).end_ns < leaf.start_ns;
  const bool works_for = master_[static_cast<std::size_t>(track_)] != TrackId::none;
  const std::optional<Cut> cut = wait_of(leaf, end_ns);
  if (cut) piece.end_ns = std::min(cut->own_until, end_ns - 1);
  const std::uint32_t first = builder_.add(piece);
  if (after_gap && works_for) took_over(first, leaf);
  if (!cut) return;
  piece.start_ns = std::min(cut->released, end_ns - 1);  // of no length it would stand behind what comes next
  piece.end_ns = end_ns;
  piece.turn = 3;  // behind device work that begins at the same instant
  HostWait wait = cut->wait;
  wait.piece = builder_.add(piece);
  waits_.push_back(wait);
  for (const std::uint32_t row : cut->also) {
    waits_.push_back({.piece = wait.piece, .row = row, .why = wait.why, .released = false});
  }
}

// What it waited for: that it was asked to communicate; else what the thread that it works for had done before.
void HostLanes::took_over(std::uint32_t piece, const Leaf& leaf) {
  const auto t = static_cast<std::size_t>(track_);
  if (why_[t] == WaitEvidence::worker) {
    const auto served = std::lower_bound(served_.begin(), served_.end(), leaf.start_ns, [&](SliceId slice, auto time) {
      return trace_.slices.start_ns[slice] < time;
    });
    const SliceId request =
        served == served_.end() ? SliceId::none : requests_[static_cast<std::size_t>(served - served_.begin())];
    if (request == SliceId::none) return;
    // On a machine without a core to spare it begins when the thread that asked pauses.
    const std::int64_t asked = trace_.slices.start_ns[request];
    const std::int64_t paused = leaves_.of(master_[t]).last_active(leaf.start_ns);
    if (leaf.start_ns - asked > kWakeNs && paused > asked && leaf.start_ns - paused <= kWakeNs) {
      waits_.push_back({.piece = piece, .track = master_[t], .time_ns = paused, .why = why_[t]});
      return;
    }
    waits_.push_back(
        {.piece = piece, .track = trace_.slices.track[request], .time_ns = asked, .from_start = true, .why = why_[t]});
    return;
  }
  const LeafTime& master = leaves_.of(master_[t]);
  const std::size_t at = master.before(leaf.start_ns);
  if (at >= master.pieces.size()) return;
  // Where it was between two operators, that ended when it handed over.
  const bool handed_over = may_wait(master.pieces[at].work);
  const std::int64_t since = handed_over ? leaf.start_ns : master.last_active(leaf.start_ns);
  if (since == kAbsent) return;
  waits_.push_back({.piece = piece, .track = master_[t], .time_ns = since, .why = why_[t]});
}

std::optional<Cut> HostLanes::wait_of(const Leaf& leaf, std::int64_t end_ns) const {
  if (leaf.work == HostWork::launch) {
    if (auto cut = released(leaf, end_ns)) return cut;
    return queued(leaf, end_ns);
  }
  if (!may_wait(leaf.work)) return released(leaf, end_ns);
  if (auto cut = joined(leaf, end_ns)) return cut;
  if (auto cut = gave_way(leaf, end_ns)) return cut;
  return polled(leaf, end_ns);
}

// In a call that returned when device work had ended.
std::optional<Cut> HostLanes::released(const Leaf& leaf, std::int64_t end_ns) const {
  if (leaf.slice == SliceId::none) return std::nullopt;
  const std::uint32_t row = edges_.released_by(leaf.slice);
  if (row == Dependencies::none || end(row) <= leaf.start_ns || start(row) >= end_ns) return std::nullopt;
  const std::int64_t at = std::min(end(row), end_ns);
  // A copy that its own call waited for begins after the call did: up to its launch the host was busy with it.
  return Cut{std::min(leaf.start_ns + kCallNs, at),
             at,
             {.row = row, .time_ns = at, .why = WaitEvidence::sync_call},
             others_waited_for(leaf, row)};
}

// A call that waits for the whole device waits for the last work of its other streams too: that may be what remains to
// be waited for when `row` ends earlier.
std::vector<std::uint32_t> HostLanes::others_waited_for(const Leaf& leaf, std::uint32_t row) const {
  std::vector<std::uint32_t> others;
  const std::string_view name = trace_.name(leaf.slice);
  if (name.find("DeviceSynchronize") == std::string_view::npos &&
      name.find("CtxSynchronize") == std::string_view::npos) {
    return others;
  }
  const auto track = [&](std::uint32_t other) { return trace_.slices.track[trace_.device.slice[other]]; };
  const auto& rows = edges_.by_end;
  auto at = std::upper_bound(rows.begin(), rows.end(), end(row),
                             [&](std::int64_t time, std::uint32_t other) { return time < end(other); });
  for (int looked = 0; looked < kLook && at != rows.begin() && end(*--at) > leaf.start_ns; looked++) {
    const SliceId launch = trace_.device.launch[*at];
    const bool asked = launch != SliceId::none && trace_.slices.start_ns[launch] < leaf.start_ns;
    if (!asked || track(*at) == track(row) || trace_.device.device[*at] != trace_.device.device[row]) continue;
    const bool later = std::any_of(others.begin(), others.end(), [&](auto one) { return track(one) == track(*at); });
    if (!later) others.push_back(*at);
  }
  return others;
}

// In a launch call while the queue was full: it waited until the device had begun what was then the newest.
std::optional<Cut> HostLanes::queued(const Leaf& leaf, std::int64_t end_ns) const {
  if (end_ns - leaf.start_ns < kSlowLaunchNs) return std::nullopt;
  const auto& launched = edges_.launched[static_cast<std::size_t>(track_)];
  const auto pending_end = std::lower_bound(
      launched.begin(), launched.end(), leaf.start_ns,
      [&](std::uint32_t row, std::int64_t t) { return trace_.slices.start_ns[trace_.device.launch[row]] < t; });
  // Of what it launched before, what had not begun when the call ended.
  std::size_t pending = 0;
  std::uint32_t begun = kNone;
  for (auto row = pending_end; row != launched.begin() && pending < kLongestQueue;) {
    --row;
    if (start(*row) < end_ns) {
      begun = *row;
      break;
    }
    pending++;
  }
  if (pending < kFullQueue || begun == kNone || start(begun) <= leaf.start_ns) return std::nullopt;
  return Cut{std::min(leaf.start_ns + kCallNs, start(begun)),
             start(begun),
             {.row = begun, .time_ns = start(begun), .from_start = true, .why = WaitEvidence::launch_queue}};
}

std::optional<Cut> HostLanes::polled(const Leaf& leaf, std::int64_t end_ns) const {
  const std::int64_t waited = end_ns - leaf.start_ns;
  if (waited < kShortestPollNs) return std::nullopt;
  const auto& rows = edges_.launched[static_cast<std::size_t>(track_)];
  const auto after = std::lower_bound(rows.begin(), rows.end(), leaf.start_ns, [&](std::uint32_t row, std::int64_t t) {
    return trace_.slices.start_ns[trace_.device.launch[row]] < t;
  });
  if (after == rows.begin()) return std::nullopt;
  const std::uint32_t row = *(after - 1);
  const std::int64_t called = trace_.slices.end_ns(trace_.device.launch[row]), slack = waited / kPollPrecision;
  if (called + kPollBeginsNs < leaf.start_ns || start(row) >= end_ns) return std::nullopt;
  if (end(row) < end_ns - slack || end(row) > end_ns + slack || end(row) <= leaf.start_ns) return std::nullopt;
  const std::int64_t at = std::min(end(row), end_ns);
  return Cut{std::min(leaf.start_ns + kCallNs, at), at, {.row = row, .time_ns = at, .why = WaitEvidence::polled}};
}

// Communication that the thread waited for, though its own thread noted its end later: the last of the other ranks came
// within the wait, and soon afterwards that was over.
SliceId HostLanes::noted_late(const Leaf& leaf, std::int64_t end_ns) const {
  SliceId found = SliceId::none;
  std::int64_t latest = leaf.start_ns;
  auto at = std::upper_bound(served_by_end_.begin(), served_by_end_.end(), end_ns + kToldEarlyNs,
                             [&](std::int64_t time, SliceId slice) { return time < trace_.slices.end_ns(slice); });
  for (; at != served_by_end_.end() && trace_.slices.end_ns(*at) <= end_ns + kNotedLateNs; at++) {
    const auto arrival = last_arrival_ns_.find(*at);
    if (trace_.slices.start_ns[*at] >= end_ns || arrival == last_arrival_ns_.end()) continue;
    const std::int64_t come = arrival->second;
    if (come <= latest || come > end_ns || 2 * (end_ns - come) > end_ns - leaf.start_ns) continue;
    latest = come;
    found = *at;
  }
  return found;
}

// Until a thread that communicates had done what it was asked for: the thread that waits is told a little before.
std::optional<Cut> HostLanes::joined(const Leaf& leaf, std::int64_t end_ns) const {
  if (end_ns - leaf.start_ns < kShortestWaitNs || workers_[static_cast<std::size_t>(track_)].empty()) {
    return std::nullopt;
  }
  auto last = std::upper_bound(served_by_end_.begin(), served_by_end_.end(), end_ns + kToldEarlyNs,
                               [&](std::int64_t time, SliceId slice) { return time < trace_.slices.end_ns(slice); });
  std::int64_t nearest = INT64_MAX;
  SliceId found = SliceId::none;
  for (int looked = 0; looked < 8 && last != served_by_end_.begin(); looked++) {
    const SliceId slice = *--last;
    const std::int64_t end = trace_.slices.end_ns(slice);
    if (end <= leaf.start_ns) break;
    const std::int64_t away = end > end_ns ? end - end_ns : end_ns - end;
    if (trace_.slices.start_ns[slice] >= end_ns || away >= nearest) continue;
    nearest = away;
    found = slice;
  }
  if (found == SliceId::none || nearest > kToldEarlyNs) {
    if (const SliceId late = noted_late(leaf, end_ns); late != SliceId::none) {
      return Cut{std::min(leaf.start_ns + kCallNs, end_ns),
                 end_ns,
                 {.track = trace_.slices.track[late], .time_ns = end_ns, .why = WaitEvidence::worker, .ends_it = true}};
    }
  }
  if (found == SliceId::none) return std::nullopt;
  const std::int64_t end = trace_.slices.end_ns(found), released = std::min(end, end_ns);
  return Cut{std::min(leaf.start_ns + kCallNs, released),
             released,
             {.track = trace_.slices.track[found], .time_ns = end, .why = WaitEvidence::worker}};
}

// While a thread that works for this one was active: it waited until that had ended.
std::optional<Cut> HostLanes::gave_way(const Leaf& leaf, std::int64_t end_ns) const {
  if (end_ns - leaf.start_ns < kShortestWaitNs) return std::nullopt;
  TrackId last = TrackId::none;
  std::int64_t until = leaf.start_ns;
  for (const TrackId worker : workers_[static_cast<std::size_t>(track_)]) {
    const std::int64_t active = leaves_.of(worker).last_active(end_ns);
    const bool communicates = why_[static_cast<std::size_t>(worker)] == WaitEvidence::worker;
    if (!communicates && active > until && active < end_ns) last = worker, until = active;
  }
  if (last == TrackId::none) return std::nullopt;
  // It worked until the other thread began.
  const LeafTime& other = leaves_.of(last);
  const auto begun = std::lower_bound(other.active.begin(), other.active.end(), leaf.start_ns,
                                      [](const Interval& when, std::int64_t t) { return when.end <= t; });
  const std::int64_t first = begun == other.active.end() ? leaf.start_ns : std::max(begun->start, leaf.start_ns);
  return Cut{std::min(first, until), until, {.track = last, .time_ns = until, .why = WaitEvidence::autograd}};
}

}  // namespace

std::vector<HostWait> add_host_lanes(GraphBuilder& builder, std::size_t trace, const Dependencies& dependencies) {
  return HostLanes(builder, trace, dependencies).take();
}

void add_host_waits(GraphBuilder& builder, std::size_t trace, const std::vector<HostWait>& waits) {
  for (const HostWait& wait : waits) {
    Edge edge{.why = wait.why, .from_start = wait.from_start};
    const std::int64_t start_ns = builder.piece(wait.piece).start_ns;
    std::int64_t ready = wait.time_ns, inside = 0;
    if (wait.row != kNone) {
      edge.from = builder.device_piece(trace, wait.row);
      if (edge.from != kNone) {
        const Piece& from = builder.piece(edge.from);
        ready = wait.from_start ? from.start_ns : from.end_ns;
      }
    } else if (const std::uint32_t lane = builder.lane_of(trace, wait.track); lane != kNone) {
      edge.from = builder.at(lane, wait.from_start ? wait.time_ns : wait.time_ns - 1);
      if (edge.from == kNone) continue;
      Piece& from = builder.piece(edge.from);
      if (wait.ends_it && from.role == NodeRole::communicate) from.end_ns = std::min(from.end_ns, wait.time_ns);
      edge.from_start = wait.from_start || from.end_ns > wait.time_ns;  // it went on with the same piece
      inside = edge.from_start ? wait.time_ns - from.start_ns : 0;
      ready = edge.from_start ? from.start_ns : from.end_ns;
    }
    if (edge.from == kNone) continue;
    const std::int64_t lag = std::min(start_ns - ready, wait.released ? inside + kWakeNs : 0);
    edge.lag_ns = static_cast<std::int32_t>(std::clamp<std::int64_t>(lag, -1'000'000, INT32_MAX));
    builder.add_edge(wait.piece, edge);
  }
}

}  // namespace stepscope::simulate
