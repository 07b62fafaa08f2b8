// Streams as lanes: every piece of device work, with the launch, the work and the events that it waited for.
#include <algorithm>

#include "model/answer_parts.h"
#include "simulate/graph_builder.h"

namespace stepscope::simulate {
namespace {

// A device needs a few microseconds between two pieces of queued work; a longer wait has another reason.
constexpr std::int64_t kHandOverNs = 5'000;
// So much work that ended just before is looked at.
constexpr int kLook = 64;

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

  std::int64_t usual_gap() const;
  void add_piece(std::uint32_t row);
  void add_edges(std::uint32_t row);
  std::uint32_t ended_just_before(std::uint32_t row, std::int64_t after_ns) const;
  void link(std::uint32_t row, std::uint32_t from, std::int64_t ready, std::int64_t most_lag, WaitEvidence why,
            bool from_start) {
    const std::int64_t lag = std::min(start(row) - ready, most_lag);
    builder_.add_edge(builder_.device_piece(number_, row),
                      {.from = from, .lag_ns = static_cast<std::int32_t>(std::max<std::int64_t>(lag, -1'000'000)),
                       .why = why, .from_start = from_start});
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
  const bool communication =
      trace_.device.device_class[row] == static_cast<std::uint8_t>(DeviceClass::communication);
  Piece piece{.start_ns = start(row), .end_ns = end(row), .lane = lane,
              .role = communication ? NodeRole::communicate : NodeRole::device, .slice = slice, .row = row};
  if (const std::uint32_t before = edges_.stream_before[row]; before != Dependencies::none) {
    piece.own_start = end(before) > start(row);
    piece.gap_ns = static_cast<std::int32_t>(std::clamp<std::int64_t>(start(row) - end(before), 0, usual_gap_ns_));
  }
  builder_.add(piece);
}

void DeviceLanes::add_edges(std::uint32_t row) {
  std::int64_t explained = INT64_MIN;
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
  const SliceId launch = trace_.device.launch[row];
  const std::uint32_t host =
      launch == SliceId::none ? kNone : builder_.lane_of(number_, trace_.slices.track[launch]);
  if (host != kNone) {
    const std::int64_t called = trace_.slices.start_ns[launch];
    if (const std::uint32_t from = builder_.at(host, called); from != kNone) {
      const std::int64_t inside = called - builder_.piece(from).start_ns;
      link(row, from, builder_.piece(from).start_ns, inside + edges_.launch_latency_ns, WaitEvidence::launch, true);
      explained = std::max(explained, called + edges_.launch_latency_ns - kHandOverNs);
    }
  }
  if (start(row) - explained <= kHandOverNs) return;
  const std::uint32_t other = ended_just_before(row, explained);
  if (other == kNone) return;
  link(row, builder_.device_piece(number_, other), end(other), kHandOverNs, WaitEvidence::end_to_start, false);
}

// Work of another stream of the device that ended after `after_ns` and at most the usual hand-over before `row` began.
std::uint32_t DeviceLanes::ended_just_before(std::uint32_t row, std::int64_t after_ns) const {
  const auto& rows = edges_.by_end;
  auto at = std::upper_bound(rows.begin(), rows.end(), start(row),
                             [&](std::int64_t time, std::uint32_t other) { return time < end(other); });
  const std::int64_t earliest = std::max(after_ns, start(row) - kHandOverNs);
  for (int looked = 0; looked < kLook && at != rows.begin() && end(*--at) > earliest; looked++) {
    if (start(*at) < start(row) && trace_.device.device[*at] == trace_.device.device[row]) return *at;
  }
  return kNone;
}

}  // namespace

void add_device_lanes(GraphBuilder& builder, std::size_t trace, const Dependencies& dependencies) {
  DeviceLanes(builder, trace, dependencies).add();
}

}  // namespace stepscope::simulate
