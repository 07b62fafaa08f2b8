#include "timeline/pyramid.h"

#include <algorithm>
#include <tuple>

namespace stepscope::timeline {
namespace {

constexpr std::int64_t kFinestBucketNs = 1 << 10;
constexpr std::int64_t kBucketStep = 4;
constexpr std::size_t kFewest = 64;        // rectangles of a row that are quicker drawn than merged
constexpr std::uint32_t kMostRows = 1024;  // what is nested deeper shares the last one
constexpr std::uint32_t kNoLane = 0xffffffff;

RectClass host_class(SliceKind kind, std::string_view name) {
  switch (kind) {
    case SliceKind::runtime: return RectClass::runtime;
    case SliceKind::python_function: return RectClass::python;
    case SliceKind::cpu_op:
    case SliceKind::user_annotation: {
      const bool library = name.starts_with("gloo:") || name.starts_with("mpi:") || name.starts_with("ucc:") ||
                           name.starts_with("nccl:") || name.starts_with("c10d::");
      if (library) return RectClass::communication;
      return kind == SliceKind::cpu_op ? RectClass::op : RectClass::annotation;
    }
    case SliceKind::gpu_user_annotation: return RectClass::annotation;
    case SliceKind::kernel: return RectClass::compute;
    case SliceKind::memcpy:
    case SliceKind::memset: return RectClass::copy;
    case SliceKind::sync: return RectClass::wait;
    default: return RectClass::other;
  }
}

}  // namespace

void Pyramid::Level::add(const Rect& rect) {
  start_ns.push_back(rect.start_ns);
  dur_ns.push_back(rect.dur_ns);
  slice.push_back(rect.slice);
  count.push_back(rect.count);
  name.push_back(rect.name);
  kind.push_back(static_cast<std::uint8_t>(rect.kind));
  fill.push_back(rect.fill);
}

Rect Pyramid::Level::at(std::size_t i) const {
  return {start_ns[i], dur_ns[i], slice[i], count[i], name[i], static_cast<RectClass>(kind[i]), fill[i]};
}

// Takes rectangles by start and gives them on, neighbors in a bucket as one.
struct Pyramid::Merger {
  std::int64_t bucket_ns;
  Rect open;
  std::int64_t bucket = 0, longest_ns = 0;
  double busy_ns = 0;
  bool any = false, alone = false;

  template <class Out>
  void add(const Rect& rect, const Out& out) {
    const std::int64_t in = rect.start_ns / bucket_ns;
    const bool long_enough = rect.dur_ns >= bucket_ns;
    if (any && !alone && !long_enough && in == bucket) {
      const std::int64_t end = std::max(open.start_ns + open.dur_ns, rect.start_ns + rect.dur_ns);
      open.dur_ns = end - open.start_ns;
      open.slice = SliceId::none;
      open.count += rect.count;
      busy_ns += static_cast<double>(rect.dur_ns) * rect.fill;
      if (rect.dur_ns > longest_ns) {
        longest_ns = rect.dur_ns;
        open.name = rect.name;
        open.kind = rect.kind;
      }
      return;
    }
    flush(out);
    any = true;
    alone = long_enough;
    open = rect;
    bucket = in;
    longest_ns = rect.dur_ns;
    busy_ns = static_cast<double>(rect.dur_ns) * rect.fill;
  }
  template <class Out>
  void flush(const Out& out) {
    if (!any) return;
    if (open.slice == SliceId::none && open.dur_ns > 0) {
      open.fill = static_cast<float>(std::min(busy_ns / static_cast<double>(open.dur_ns), 1.0));
    }
    out(open);
    any = false;
  }
};

Pyramid::Pyramid(const Trace& trace) : trace_(trace), row_of_(trace.slices.size(), 0) {
  classify();
  std::vector<std::vector<SliceId>> by_track(trace.tracks.size());
  start_ns_ = INT64_MAX;
  end_ns_ = INT64_MIN;
  for (std::uint32_t i = 0; i < trace.slices.size(); i++) {
    const TrackId track = trace.slices.track[i];
    if (track == TrackId::none) continue;
    by_track[static_cast<std::size_t>(track)].push_back(static_cast<SliceId>(i));
    // The recording itself is no part of what ran; some recorders give it a time of another clock.
    if (trace.kind(static_cast<SliceId>(i)) == SliceKind::trace_window) continue;
    start_ns_ = std::min(start_ns_, trace.slices.start_ns[i]);
    end_ns_ = std::max(end_ns_, trace.slices.end_ns(static_cast<SliceId>(i)));
  }
  if (end_ns_ < start_ns_) start_ns_ = end_ns_ = 0;
  std::vector<std::uint32_t> order;
  for (std::uint32_t track = 0; track < by_track.size(); track++) {
    if (!by_track[track].empty()) order.push_back(track);
  }
  // As recorders ask for it, else the threads with most slices first.
  const auto key = [&](std::uint32_t track) {
    const Track& one = trace.tracks[track];
    const std::int64_t index = one.sort_index == kAbsent ? INT64_MAX : one.sort_index;
    return std::tuple(one.device, trace.strings[one.process], one.device ? index : 0,
                      -static_cast<std::int64_t>(by_track[track].size()));
  };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  lane_of_track_.assign(trace.tracks.size(), kNoLane);
  rows_.resize(order.size());
  for (std::size_t lane = 0; lane < order.size(); lane++) {
    lane_of_track_[order[lane]] = static_cast<std::uint32_t>(lane);
    lanes_.push_back({static_cast<TrackId>(order[lane]), by_track[order[lane]].size(), 0});
    place(lane, by_track[order[lane]]);
    by_track[order[lane]] = {};
    for (Row& row : rows_[lane]) build_levels(row);
    lanes_[lane].rows = static_cast<std::uint32_t>(rows_[lane].size());
  }
}

void Pyramid::classify() {
  const Slices& slices = trace_.slices;
  kinds_.resize(slices.size());
  for (std::size_t i = 0; i < kinds_.size(); i++) {
    const auto slice = static_cast<SliceId>(i);
    kinds_[i] = static_cast<std::uint8_t>(host_class(trace_.kind(slice), trace_.name(slice)));
  }
  for (std::size_t row = 0; row < trace_.device.size(); row++) {
    if (trace_.device.device_class[row] != static_cast<std::uint8_t>(DeviceClass::communication)) continue;
    kinds_[static_cast<std::size_t>(trace_.device.slice[row])] = static_cast<std::uint8_t>(RectClass::communication);
  }
}

void Pyramid::place(std::size_t lane, std::vector<SliceId>& slices) {
  const Slices& all = trace_.slices;
  std::stable_sort(slices.begin(), slices.end(), [&](SliceId a, SliceId b) {
    return std::pair(all.start_ns[a], -all.dur_ns[a]) < std::pair(all.start_ns[b], -all.dur_ns[b]);
  });
  std::vector<Row>& rows = rows_[lane];
  std::vector<std::int64_t> ends;  // of the last slice of each row
  for (const SliceId slice : slices) {
    std::uint32_t row = std::min<std::uint32_t>(all.depth[slice], kMostRows - 1);
    while (row < ends.size() && ends[row] > all.start_ns[slice] && row + 1 < kMostRows) row++;
    if (row >= ends.size()) {
      ends.resize(row + 1, INT64_MIN);
      rows.resize(row + 1);
    }
    ends[row] = std::max(ends[row], all.end_ns(slice));
    rows[row].slices.push_back(slice);
    row_of_[static_cast<std::size_t>(slice)] = static_cast<std::uint16_t>(row);
  }
}

Rect Pyramid::rect_of(SliceId slice) const {
  return {trace_.slices.start_ns[slice],
          trace_.slices.dur_ns[slice],
          slice,
          1,
          trace_.slices.name[slice],
          kind_of(slice),
          1};
}

void Pyramid::build_levels(Row& row) const {
  std::size_t below = row.slices.size();
  const std::int64_t span = std::max<std::int64_t>(end_ns_ - start_ns_, 1);
  for (std::int64_t bucket = kFinestBucketNs; bucket < span && below > kFewest; bucket *= kBucketStep) {
    Level level{.bucket_ns = bucket};
    Merger merger{.bucket_ns = bucket};
    const auto out = [&](const Rect& rect) { level.add(rect); };
    if (row.levels.empty()) {
      for (const SliceId slice : row.slices) merger.add(rect_of(slice), out);
    } else {
      const Level& from = row.levels.back();
      for (std::size_t i = 0; i < from.size(); i++) merger.add(from.at(i), out);
    }
    merger.flush(out);
    if (level.size() * 2 > below) continue;
    below = level.size();
    row.levels.push_back(std::move(level));
  }
}

void Pyramid::query(std::size_t lane, std::uint32_t row, std::int64_t from_ns, std::int64_t to_ns,
                    std::int64_t merge_ns, std::vector<Rect>& out) const {
  if (lane >= rows_.size() || row >= rows_[lane].size()) return;
  const Row& one = rows_[lane][row];
  const Level* level = nullptr;
  for (const Level& candidate : one.levels) {
    if (candidate.bucket_ns <= merge_ns) level = &candidate;
  }
  Merger merger{.bucket_ns = std::max<std::int64_t>(merge_ns, 1)};
  const auto take = [&](const Rect& rect) { out.push_back(rect); };
  // Rectangles of a row do not overlap: the last that begins before the stretch may reach into it, no other does.
  const auto draw = [&](std::size_t count, const auto& start_of, const auto& rect_at) {
    std::size_t first = 0, last = count;
    while (first < last) {
      const std::size_t middle = first + (last - first) / 2;
      if (start_of(middle) < from_ns) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    for (std::size_t i = first > 0 ? first - 1 : 0; i < count && start_of(i) < to_ns; i++) {
      const Rect rect = rect_at(i);
      if (i < first && rect.start_ns + rect.dur_ns <= from_ns) continue;
      merger.add(rect, take);
    }
    merger.flush(take);
  };
  if (level != nullptr) {
    draw(
        level->size(), [&](std::size_t i) { return level->start_ns[i]; }, [&](std::size_t i) { return level->at(i); });
  } else {
    draw(
        one.slices.size(), [&](std::size_t i) { return trace_.slices.start_ns[one.slices[i]]; },
        [&](std::size_t i) { return rect_of(one.slices[i]); });
  }
}

bool Pyramid::place_of(SliceId slice, std::size_t& lane, std::uint32_t& row) const {
  row = row_of_[static_cast<std::size_t>(slice)];
  return lane_of(trace_.slices.track[slice], lane);
}

bool Pyramid::lane_of(TrackId track, std::size_t& lane) const {
  if (track == TrackId::none || lane_of_track_[static_cast<std::size_t>(track)] == kNoLane) return false;
  lane = lane_of_track_[static_cast<std::size_t>(track)];
  return true;
}

std::uint64_t Pyramid::bytes() const {
  std::uint64_t bytes = kinds_.size() + 2 * row_of_.size();
  for (const auto& rows : rows_) {
    for (const Row& row : rows) {
      bytes += row.slices.size() * sizeof(SliceId);
      for (const Level& level : row.levels) bytes += level.size() * 33;
    }
  }
  return bytes;
}

}  // namespace stepscope::timeline
