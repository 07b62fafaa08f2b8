#include "model/dependencies.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "model/answer_parts.h"
#include "model/host_names.h"
#include "model/windows.h"

namespace stepscope {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, kWaitEvidences> kEvidenceTexts{{
    {"program order", "the same thread did this before"},
    {"launch", "the call that launched the work came late"},
    {"stream order", "the work before it on its stream had to end"},
    {"event wait", "its stream waited for an event of another stream, as recorded"},
    {"end to start", "inferred: it was queued and started right after work of another stream had ended"},
    {"sync call", "the host sat in a synchronizing call until this device work had ended"},
    {"polled", "inferred: the host did nothing after it had launched this work, and went on when it ended"},
    {"autograd", "a thread that runs backward operators and the one that ran their forward operators take turns"},
    {"none", "nothing in the recording shows what it waited for"},
    {"launch queue", "the host sat in a launch call while the queue of launches was full"},
    {"worker", "a thread that communicates was asked by this one, went on when it paused, or was waited for by it"},
    {"collective", "a collective begins when the last of its ranks arrives"},
    {"occupied", "inferred: work of other streams filled the device all the while, and this began where that ran out"},
}};

constexpr std::int64_t kUsualLatencyNs = 10'000;
// So many pieces of work are looked at for one waiting call; more only where other threads launched meanwhile.
constexpr int kLook = 4096;
// Device and host clocks of a trace agree to some microseconds: work may seem to end after the call that waited for it.
constexpr std::int64_t kClockSlackNs = 10'000;

class Finder {
 public:
  Finder(const Trace& trace, Dependencies& out) : trace_(trace), out_(out), lanes_(trace.tracks.size()) {}

  void order_streams();
  void link_events();
  void link_calls();
  void link_threads();
  void order_launches();

 private:
  struct Wait {  // a recorded device-side wait and the host call that asked for it
    SliceId call;
    std::uint32_t row;
  };

  std::int64_t start(std::uint32_t row) const { return trace_.slices.start_ns[trace_.device.slice[row]]; }
  std::int64_t end(std::uint32_t row) const { return trace_.slices.end_ns(trace_.device.slice[row]); }
  std::size_t lane(std::uint32_t row) const {
    return static_cast<std::size_t>(trace_.slices.track[trace_.device.slice[row]]);
  }
  std::int64_t launched(std::uint32_t row) const {
    const SliceId launch = trace_.device.launch[row];
    return launch == SliceId::none ? start(row) : trace_.slices.start_ns[launch];
  }
  std::vector<Wait> waits() const;
  std::unordered_map<std::int64_t, std::int64_t> record_times(const std::vector<Wait>& waits) const;
  std::uint32_t last_recorded(const Wait& wait, const std::unordered_map<std::int64_t, std::int64_t>& records) const;
  std::size_t position_after(std::size_t lane, std::int64_t time_ns) const;
  std::uint32_t last_released(SliceId call, std::size_t only_lane) const;

  const Trace& trace_;
  Dependencies& out_;
  std::vector<std::vector<std::uint32_t>> lanes_;  // per track: its work, in order
  std::map<std::pair<std::int32_t, std::int64_t>, std::size_t> lane_of_stream_;
};

void Finder::order_streams() {
  out_.stream_before.assign(trace_.device.size(), Dependencies::none);
  for (const std::uint32_t row : out_.by_start) {
    auto& rows = lanes_[lane(row)];
    if (!rows.empty()) out_.stream_before[row] = rows.back();
    if (rows.empty()) lane_of_stream_[{trace_.device.device[row], trace_.device.stream[row]}] = lane(row);
    rows.push_back(row);
  }
}

std::vector<Finder::Wait> Finder::waits() const {
  std::vector<Wait> waits;
  for (std::uint32_t row = 0; row < trace_.device.size(); row++) {
    const SliceId call = trace_.device.launch[row];
    if (call != SliceId::none && trace_.kind(trace_.device.slice[row]) == SliceKind::sync) waits.push_back({call, row});
  }
  std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.call < b.call; });
  return waits;
}

// Correlation id of an event record → when the call was made; only of those that somebody waited for.
std::unordered_map<std::int64_t, std::int64_t> Finder::record_times(const std::vector<Wait>& waits) const {
  std::unordered_map<std::int64_t, std::int64_t> times;
  for (const Wait& wait : waits) {
    if (const std::int64_t id = trace_.device.wait_correlation[wait.row]; id > 0) times[id] = kAbsent;
  }
  if (times.empty()) return times;
  for (std::size_t row = 0; row < trace_.launches.size(); row++) {
    const auto found = times.find(trace_.launches.correlation[row]);
    if (found != times.end()) found->second = trace_.slices.start_ns[trace_.launches.slice[row]];
  }
  return times;
}

// Index into the lane's work of the first piece that was launched after `time_ns`.
std::size_t Finder::position_after(std::size_t lane, std::int64_t time_ns) const {
  const auto& rows = lanes_[lane];
  const auto found = std::upper_bound(rows.begin(), rows.end(), time_ns,
                                      [&](std::int64_t time, std::uint32_t row) { return time < launched(row); });
  return static_cast<std::size_t>(found - rows.begin());
}

// The work that the event of a recorded wait stands for: the last on its stream that was launched before the record,
// before the wait itself where the record is not known.
std::uint32_t Finder::last_recorded(const Wait& wait,
                                    const std::unordered_map<std::int64_t, std::int64_t>& records) const {
  const std::int64_t stream = trace_.device.wait_stream[wait.row];
  const auto lane = lane_of_stream_.find({trace_.device.device[wait.row], stream});
  if (stream == kAbsent || lane == lane_of_stream_.end()) return Dependencies::none;
  const auto record = records.find(trace_.device.wait_correlation[wait.row]);
  const bool known = record != records.end() && record->second != kAbsent;
  const std::int64_t time = known ? record->second : trace_.slices.start_ns[wait.call];
  const std::size_t at = position_after(lane->second, time);
  return at == 0 ? Dependencies::none : lanes_[lane->second][at - 1];
}

void Finder::link_events() {
  out_.event_before.assign(trace_.device.size(), Dependencies::none);
  const std::vector<Wait> found = waits();
  const auto records = record_times(found);
  for (const Wait& wait : found) {
    const std::uint32_t before = last_recorded(wait, records);
    if (before == Dependencies::none) continue;
    const auto& rows = lanes_[lane(wait.row)];
    const std::size_t at = position_after(lane(wait.row), trace_.slices.start_ns[wait.call]);
    if (rows.empty()) {  // no stream waited: the host did (Event Sync)
      out_.released.push_back({wait.call, before});
    } else if (at < rows.size()) {
      std::uint32_t& known = out_.event_before[rows[at]];
      if (known == Dependencies::none || end(before) > end(known)) known = before;
    }
  }
}

// The work that ended last while `call` waited, of what had been launched before it.
std::uint32_t Finder::last_released(SliceId call, std::size_t only_lane) const {
  const std::int64_t from = trace_.slices.start_ns[call], until = trace_.slices.end_ns(call);
  auto at = std::upper_bound(out_.by_end.begin(), out_.by_end.end(), until + kClockSlackNs,
                             [&](std::int64_t time, std::uint32_t row) { return time < end(row); });
  for (int looked = 0; looked < kLook && at != out_.by_end.begin() && end(*--at) > from; looked++) {
    if (launched(*at) < from && start(*at) < until && (only_lane >= lanes_.size() || lane(*at) == only_lane)) {
      return *at;
    }
  }
  return Dependencies::none;
}

void Finder::link_calls() {
  const auto by_call = [](const Released& a, const Released& b) { return a.call < b.call; };
  std::sort(out_.released.begin(), out_.released.end(), by_call);
  const std::vector<Released> by_event = out_.released;
  for (const std::uint32_t row : out_.by_start) {  // a copy that ended inside its call: the call waited for it
    const SliceId call = trace_.device.launch[row];
    if (call == SliceId::none || trace_.kind(trace_.device.slice[row]) != SliceKind::memcpy) continue;
    if (end(row) <= trace_.slices.end_ns(call)) out_.released.push_back({call, row});
  }
  const std::vector<Wait> recorded = waits();
  std::vector<std::uint8_t> verdict(trace_.strings.size(), 0);  // per name: 1 does not wait, 2 waits
  for (std::uint32_t i = 0; i < trace_.slices.size(); i++) {
    const auto call = static_cast<SliceId>(i);
    const StringId name = trace_.slices.name[call];
    if (trace_.kind(call) != SliceKind::runtime || name == StringId::none) continue;
    std::uint8_t& known = verdict[static_cast<std::size_t>(name)];
    if (known == 0) known = synchronizes(trace_.strings[name]) ? 2 : 1;
    if (known == 1 || std::binary_search(by_event.begin(), by_event.end(), Released{call, 0}, by_call)) continue;
    const auto wait =
        std::lower_bound(recorded.begin(), recorded.end(), call, [](const Wait& w, SliceId id) { return w.call < id; });
    std::size_t only_lane = lanes_.size();
    if (wait != recorded.end() && wait->call == call && !lanes_[lane(wait->row)].empty()) only_lane = lane(wait->row);
    const std::uint32_t row = last_released(call, only_lane);
    if (row != Dependencies::none) out_.released.push_back({call, row});
  }
  // Of several reasons the one that ended last.
  std::sort(out_.released.begin(), out_.released.end(), [&](const Released& a, const Released& b) {
    return a.call != b.call ? a.call < b.call : end(a.row) > end(b.row);
  });
  const auto same = [](const Released& a, const Released& b) { return a.call == b.call; };
  out_.released.erase(std::unique(out_.released.begin(), out_.released.end(), same), out_.released.end());
}

void Finder::link_threads() {
  out_.feeder.assign(trace_.tracks.size(), TrackId::none);
  std::map<std::pair<TrackId, TrackId>, std::uint64_t> votes;
  for (const Backward& pair : trace_.backward) {
    votes[{trace_.slices.track[pair.backward], trace_.slices.track[pair.forward]}]++;
  }
  std::map<TrackId, std::uint64_t> best;
  for (const auto& [who, count] : votes) {
    if (count <= best[who.first]) continue;
    best[who.first] = count;
    out_.feeder[static_cast<std::size_t>(who.first)] = who.second == who.first ? TrackId::none : who.second;
  }
}

void Finder::order_launches() {
  out_.launched.resize(trace_.tracks.size());
  for (const std::uint32_t row : out_.by_start) {
    const SliceId call = trace_.device.launch[row];
    if (call != SliceId::none) out_.launched[static_cast<std::size_t>(trace_.slices.track[call])].push_back(row);
  }
  for (auto& rows : out_.launched) {
    std::stable_sort(rows.begin(), rows.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return launched(a) < launched(b); });
  }
}

}  // namespace

std::string_view to_string(WaitEvidence evidence) { return kEvidenceTexts[static_cast<std::size_t>(evidence)].first; }
std::string_view meaning_of(WaitEvidence evidence) { return kEvidenceTexts[static_cast<std::size_t>(evidence)].second; }

std::uint32_t Dependencies::released_by(SliceId call) const {
  const auto found = std::lower_bound(released.begin(), released.end(), call,
                                      [](const Released& row, SliceId id) { return row.call < id; });
  return found != released.end() && found->call == call ? found->row : none;
}

std::int64_t usual_launch_latency(const Trace& trace, std::span<const std::uint32_t> rows) {
  std::vector<std::int64_t> seen;
  std::int64_t busy_until = std::numeric_limits<std::int64_t>::max();  // nothing is known before the first work
  for (const std::uint32_t row : rows) {
    const std::int64_t start = trace.slices.start_ns[trace.device.slice[row]];
    const std::int64_t end = trace.slices.end_ns(trace.device.slice[row]);
    const SliceId launch = trace.device.launch[row];
    if (start > busy_until && launch != SliceId::none && trace.slices.start_ns[launch] >= busy_until) {
      seen.push_back(start - trace.slices.start_ns[launch]);
    }
    const bool first = busy_until == std::numeric_limits<std::int64_t>::max();
    busy_until = first ? end : std::max(busy_until, end);
  }
  if (seen.size() < 5) return kUsualLatencyNs;
  return *median(std::move(seen)) * 3 / 2;
}

Dependencies dependencies(const Trace& trace) {
  Dependencies out;
  out.by_start = work_by_start(trace);
  out.by_end = out.by_start;
  std::stable_sort(out.by_end.begin(), out.by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.slices.end_ns(trace.device.slice[a]) < trace.slices.end_ns(trace.device.slice[b]);
  });
  out.launch_latency_ns = usual_launch_latency(trace, out.by_start);
  Finder finder(trace, out);
  finder.order_streams();
  finder.link_events();
  finder.link_calls();
  finder.link_threads();
  finder.order_launches();
  return out;
}

}  // namespace stepscope
