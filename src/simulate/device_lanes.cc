// Streams as lanes: every piece of device work, with the launch, the work and the events that it waited for.
#include <algorithm>
#include <cmath>

#include "model/answer_parts.h"
#include "simulate/graph_builder.h"

namespace stepscope::simulate {
namespace {

// A device needs a few microseconds between two pieces of queued work; a longer wait has another reason.
constexpr std::int64_t kHandOverNs = 5'000;
// From one stream to another it takes longer, and longest to communication, which is set up first.
constexpr std::int64_t kAcrossNs = 10'000, kToCommunicationNs = 20'000;
// Ends and starts are recorded to a microsecond or two: work may seem to begin before what it waited for has ended.
constexpr std::int64_t kEarlyNs = 3'000;
// Before any time that a file can have, and far from where differences of times run over.
constexpr std::int64_t kNever = INT64_MIN / 4;
// So much work that ended just before is looked at, and so much that filled the device.
constexpr int kLook = 64, kLookBack = 4096;
// Two pieces of work do not fit beside each other when they have more blocks than there are multiprocessors; such work
// explains a wait that it covers so far.
constexpr float kFullBlocksPerSm = 1;
constexpr double kCovered = 0.95;

class DeviceLanes {
 public:
  DeviceLanes(GraphBuilder& builder, std::size_t trace, const Dependencies& edges)
      : builder_(builder), number_(trace), trace_(builder.run().traces[trace]), edges_(edges) {}

  void add() {
    usual_gap_ns_ = usual_gap();
    for (const std::uint32_t row : edges_.by_start) add_piece(row);
    for (const std::uint32_t row : edges_.by_start) add_edges(row);
  }

 private:
  std::int64_t start(std::uint32_t row) const { return trace_.slices.start_ns[trace_.device.slice[row]]; }
  std::int64_t end(std::uint32_t row) const { return trace_.slices.end_ns(trace_.device.slice[row]); }

  bool communicates(std::uint32_t row) const {
    return trace_.device.device_class[row] == static_cast<std::uint8_t>(DeviceClass::communication);
  }
  std::int64_t usual_gap() const;
  void add_piece(std::uint32_t row);
  void add_edges(std::uint32_t row);
  std::int64_t link_launch(std::uint32_t row, std::int64_t explained);
  void infer(std::uint32_t row, std::int64_t explained);
  float blocks_per_sm(std::uint32_t row) const;
  std::uint32_t ended_just_before(std::uint32_t row, std::int64_t after_ns) const;
  std::uint32_t filled_until(std::uint32_t row, std::int64_t after_ns) const;
  std::uint32_t source_before(std::uint32_t row, std::int64_t after_ns) const;
  void link(std::uint32_t row, std::uint32_t from, std::int64_t ready, std::int64_t most_lag, WaitEvidence why,
            bool from_start) {
    const std::int64_t lag = std::min(start(row) - ready, most_lag);
    builder_.add_edge(builder_.device_piece(number_, row),
                      {.from = from,
                       .lag_ns = static_cast<std::int32_t>(std::clamp<std::int64_t>(lag, -1'000'000, INT32_MAX)),
                       .why = why,
                       .from_start = from_start});
  }

  GraphBuilder& builder_;
  std::size_t number_;
  const Trace& trace_;
  const Dependencies& edges_;
  std::int64_t usual_gap_ns_ = 0;
};

// What a stream needs from one piece of queued work to the next: the median of those that had been launched in time.
std::int64_t DeviceLanes::usual_gap() const {
  std::vector<std::int64_t> gaps;
  for (const std::uint32_t row : edges_.by_start) {
    const std::uint32_t before = edges_.stream_before[row];
    const SliceId launch = trace_.device.launch[row];
    if (before == Dependencies::none || launch == SliceId::none) continue;
    const std::int64_t gap = start(row) - end(before);
    if (gap >= 0 && gap <= kHandOverNs && trace_.slices.end_ns(launch) < end(before)) gaps.push_back(gap);
  }
  return median(std::move(gaps)).value_or(0);
}

void DeviceLanes::add_piece(std::uint32_t row) {
  const SliceId slice = trace_.device.slice[row];
  const TrackId track = trace_.slices.track[slice];
  std::uint32_t lane = builder_.lane_of(number_, track);
  if (lane == kNone) {
    lane = builder_.add_lane(
        {.trace = static_cast<std::uint32_t>(number_), .track = track, .device = true, .waits = true});
  }
  Piece piece{.start_ns = start(row),
              .end_ns = end(row),
              .lane = lane,
              .role = communicates(row) ? NodeRole::communicate : NodeRole::device,
              .slice = slice,
              .row = row};
  if (const std::uint32_t before = edges_.stream_before[row]; before != Dependencies::none) {
    piece.own_start = end(before) > start(row);
    piece.gap_ns = static_cast<std::int32_t>(std::clamp<std::int64_t>(start(row) - end(before), 0, usual_gap_ns_));
  }
  builder_.add(piece);
}

void DeviceLanes::add_edges(std::uint32_t row) {
  std::int64_t explained = kNever;
  if (const std::uint32_t before = edges_.stream_before[row]; before != Dependencies::none) {
    explained = end(before);
    if (end(before) > start(row)) {  // they ran at once: it began so long after the other had begun
      link(row, builder_.device_piece(number_, before), start(before), start(row) - start(before),
           WaitEvidence::stream_order, true);
      explained = start(row);
    }
  }
  if (const std::uint32_t before = edges_.event_before[row]; before != Dependencies::none) {
    link(row, builder_.device_piece(number_, before), end(before), kHandOverNs, WaitEvidence::event_wait, false);
    explained = std::max(explained, end(before));
  }
  explained = std::max(explained, link_launch(row, explained));
  // Of the first work of a stream without a launch nothing is known.
  if (explained != kNever && start(row) - explained > kHandOverNs) infer(row, explained);
}

// Work begins after its call has begun and, where the call is long (a queue that is full, code that is loaded first),
// about when it ends; within the call only where nothing else explains when. Gives the time up to which the launch
// explains that it had not begun.
std::int64_t DeviceLanes::link_launch(std::uint32_t row, std::int64_t explained) {
  const SliceId launch = trace_.device.launch[row];
  const std::uint32_t host = launch == SliceId::none ? kNone : builder_.lane_of(number_, trace_.slices.track[launch]);
  if (host == kNone) return kNever;
  const std::int64_t called = trace_.slices.start_ns[launch], returned = trace_.slices.end_ns(launch);
  const std::int64_t latency = edges_.launch_latency_ns;
  const bool after = start(row) >= returned && returned - called > latency;
  const std::uint32_t from = builder_.at(host, after ? returned - 1 : called);
  if (from == kNone) return kNever;
  const Piece& piece = builder_.piece(from);
  if (after) {
    link(row, from, piece.end_ns, latency, WaitEvidence::launch, false);
    return std::min(returned + latency, start(row));
  }
  const bool queued = start(row) - explained <= kAcrossNs;  // behind other work, until it was its turn
  const std::int64_t most = queued ? latency : std::max(latency, std::min(returned, start(row)) - called);
  link(row, from, piece.start_ns, called - piece.start_ns + most, WaitEvidence::launch, true);
  return std::min(called + most, start(row));
}

void DeviceLanes::infer(std::uint32_t row, std::int64_t explained) {
  std::uint32_t other = ended_just_before(row, explained);
  if (other != kNone) {
    link(row, builder_.device_piece(number_, other), end(other), kToCommunicationNs, WaitEvidence::end_to_start, false);
    return;
  }
  other = filled_until(row, explained);
  if (other == kNone) {  // it may have waited for its data first, and for room then
    const std::uint32_t before = source_before(row, explained);
    if (before == kNone) return;
    other = filled_until(row, end(before));
    if (other == kNone) return;
    link(row, builder_.device_piece(number_, before), end(before), kToCommunicationNs, WaitEvidence::end_to_start,
         false);
  }
  // the lag is below 0: it began before the last blocks of the other had ended
  link(row, builder_.device_piece(number_, other), end(other), kHandOverNs, WaitEvidence::occupied, false);
}

// Work of another stream of the device that ended after `after_ns` and at most the usual hand-over before `row` began.
std::uint32_t DeviceLanes::ended_just_before(std::uint32_t row, std::int64_t after_ns) const {
  const auto& rows = edges_.by_end;
  auto at = std::upper_bound(rows.begin(), rows.end(), start(row) + kEarlyNs,
                             [&](std::int64_t time, std::uint32_t other) { return time < end(other); });
  const std::int64_t earliest = std::max(after_ns, start(row) - (communicates(row) ? kToCommunicationNs : kAcrossNs));
  for (int looked = 0; looked < kLook && at != rows.begin() && end(*--at) > earliest; looked++) {
    if (start(*at) < start(row) && trace_.device.device[*at] == trace_.device.device[row]) return *at;
  }
  return kNone;
}

// Copies within a device are made by its multiprocessors, all of them; their blocks are not recorded.
float DeviceLanes::blocks_per_sm(std::uint32_t row) const {
  const SliceId slice = trace_.device.slice[row];
  if (trace_.kind(slice) != SliceKind::memcpy) return trace_.device.blocks_per_sm[row];
  return trace_.name(slice).find("DtoD") != std::string_view::npos ? kFullBlocksPerSm : 0;
}

// What handed data to `row`: communication of another stream that ended last before it began, after `after_ns`; to
// communication, whatever ended last.
std::uint32_t DeviceLanes::source_before(std::uint32_t row, std::int64_t after_ns) const {
  const auto& rows = edges_.by_end;
  auto at = std::upper_bound(rows.begin(), rows.end(), start(row),
                             [&](std::int64_t time, std::uint32_t other) { return time < end(other); });
  for (int looked = 0; looked < kLookBack && at != rows.begin() && end(*--at) > after_ns; looked++) {
    const bool may_have = communicates(row) || communicates(*at);
    if (may_have && start(*at) < start(row) && trace_.device.device[*at] == trace_.device.device[row]) return *at;
  }
  return kNone;
}

// The work of other streams that was running when `row` began, where such work filled the device since `after_ns`.
std::uint32_t DeviceLanes::filled_until(std::uint32_t row, std::int64_t after_ns) const {
  const auto& rows = edges_.by_start;
  const float own = trace_.device.blocks_per_sm[row];
  if (std::isnan(own)) return kNone;  // not recorded
  auto at = std::lower_bound(rows.begin(), rows.end(), start(row),
                             [&](std::uint32_t other, std::int64_t time) { return start(other) < time; });
  std::uint32_t running = kNone;
  std::int64_t covered = 0, from = start(row);  // what is before `from` is not covered yet
  for (int looked = 0; looked < kLookBack && at != rows.begin() && from > after_ns; looked++) {
    const std::uint32_t other = *--at;
    const bool elsewhere =
        trace_.slices.track[trace_.device.slice[other]] != trace_.slices.track[trace_.device.slice[row]] &&
        trace_.device.device[other] == trace_.device.device[row];
    if (!elsewhere || !(blocks_per_sm(other) + own > kFullBlocksPerSm)) continue;
    if (running == kNone && end(other) >= start(row)) running = other;
    const std::int64_t begin = std::max(start(other), after_ns), until = std::min(end(other), from);
    if (until <= begin) continue;
    covered += until - begin;
    from = begin;
  }
  const auto wait = static_cast<double>(start(row) - after_ns);
  return running != kNone && static_cast<double>(covered) >= kCovered * wait ? running : kNone;
}

}  // namespace

void add_device_lanes(GraphBuilder& builder, std::size_t trace, const Dependencies& dependencies) {
  DeviceLanes(builder, trace, dependencies).add();
}

}  // namespace stepscope::simulate
