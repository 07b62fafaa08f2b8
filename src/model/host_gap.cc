#include "model/host_gap.h"

#include <algorithm>
#include <string_view>

#include "model/host_names.h"

namespace stepscope {
namespace {

constexpr std::uint8_t kSync = 1, kDataLoader = 2;

std::int64_t overlap(const Trace& trace, SliceId id, Interval when) {
  return std::max<std::int64_t>(
      0, std::min(trace.slices.end_ns(id), when.end) - std::max(trace.slices.start_ns[id], when.start));
}

}  // namespace

HostTimeline::HostTimeline(const Trace& trace)
    : trace_(trace), cursor_(trace.track_begin.begin(), trace.track_begin.end()), marks_(trace.strings.size(), 0) {
  for (std::uint32_t i = 0; i < marks_.size(); i++) {
    const std::string_view name = trace.strings[StringId{i}];
    if (synchronizes(name)) marks_[i] |= kSync;
    if (is_data_loader(name)) marks_[i] |= kDataLoader;
  }
}

// Index into by_track of the last slice of `track` with start <= time; the track's end where there is none.
std::uint32_t HostTimeline::last_before(TrackId track, std::int64_t time) {
  const auto t = static_cast<std::size_t>(track);
  const std::uint32_t begin = trace_.track_begin[t], end = trace_.track_begin[t + 1];
  const auto start = [&](std::uint32_t i) { return trace_.slices.start_ns[trace_.by_track[i]]; };
  std::uint32_t& at = cursor_[t];
  if (begin == end) return end;
  if (start(at) > time) at = begin;  // asked for an earlier time than before
  if (start(at) > time) return end;
  std::uint32_t stride = 1;
  while (at + stride < end && start(at + stride) <= time) {
    at += stride;
    stride *= 2;
  }
  std::uint32_t high = std::min(end, at + stride);  // start(high) > time, or the end
  while (at + 1 < high) {
    const std::uint32_t middle = at + (high - at) / 2;
    (start(middle) <= time ? at : high) = middle;
  }
  return at;
}

void HostTimeline::look_at_enclosing(SliceId id, Interval when, HostActivity& found, std::int64_t& op_until) const {
  while (id != SliceId::none && trace_.slices.end_ns(id) <= when.start) id = trace_.slices.parent[id];
  found.innermost = id;
  bool dataloader = false;
  for (; id != SliceId::none; id = trace_.slices.parent[id]) {
    found.anything = true;
    const SliceKind kind = trace_.kind(id);
    const std::uint8_t mark =
        trace_.slices.name[id] == StringId::none ? 0 : marks_[static_cast<std::size_t>(trace_.slices.name[id])];
    if (kind == SliceKind::runtime && (mark & kSync) != 0) {
      found.in_sync_at_start = true;
      found.sync_ns += overlap(trace_, id, when);
      found.sync_call = id;
    }
    if (!dataloader && (mark & kDataLoader) != 0) {
      dataloader = true;
      found.dataloader_ns += overlap(trace_, id, when);
    }
    if (kind == SliceKind::cpu_op) {  // the last one seen on the way up is the outermost
      found.op = id;
      found.op_ns = overlap(trace_, id, when);
      op_until = trace_.slices.end_ns(id);
    }
    if (kind == SliceKind::python_function && found.function == SliceId::none && trace_.slices.end_ns(id) >= when.end) {
      found.function = id;
    }
  }
}

HostActivity HostTimeline::during(TrackId track, Interval when) {
  HostActivity found;
  if (track == TrackId::none || static_cast<std::size_t>(track) + 1 >= trace_.track_begin.size()) return found;
  const std::uint32_t end = trace_.track_begin[static_cast<std::size_t>(track) + 1];
  std::uint32_t at = last_before(track, when.start);
  std::int64_t op_until = when.start, loader_until = when.start;
  if (at != end) {
    look_at_enclosing(trace_.by_track[at], when, found, op_until);
    if (found.dataloader_ns > 0) loader_until += found.dataloader_ns;
    at++;
  } else {
    at = trace_.track_begin[static_cast<std::size_t>(track)];
  }
  for (; at < end; at++) {
    const SliceId id = trace_.by_track[at];
    if (trace_.slices.start_ns[id] >= when.end) break;
    found.anything = true;
    const SliceKind kind = trace_.kind(id);
    const std::uint8_t mark =
        trace_.slices.name[id] == StringId::none ? 0 : marks_[static_cast<std::size_t>(trace_.slices.name[id])];
    const std::int64_t part = overlap(trace_, id, when);
    if (kind == SliceKind::runtime && (mark & kSync) != 0) {
      found.sync_ns += part;
      if (found.sync_call == SliceId::none) found.sync_call = id;
    }
    if ((mark & kDataLoader) != 0 && trace_.slices.start_ns[id] >= loader_until) {
      found.dataloader_ns += part;
      loader_until = trace_.slices.end_ns(id);
    }
    if (kind == SliceKind::cpu_op && trace_.slices.start_ns[id] >= op_until) {
      op_until = trace_.slices.end_ns(id);
      if (part > found.op_ns) {
        found.op = id;
        found.op_ns = part;
      }
    }
  }
  return found;
}

}  // namespace stepscope
