#include "model/leaf_time.h"

#include <algorithm>

#include "model/host_names.h"

namespace stepscope {
namespace {

// What a name says by itself; 0: not asked yet.
enum Verdict : std::uint8_t { kUnasked, kPlain, kLaunches, kWaits, kDataLoader, kCommunicates };

Verdict verdict_of(std::string_view name) {
  if (is_data_loader(name)) return kDataLoader;
  if (is_host_communication(name)) return kCommunicates;
  if (synchronizes(name)) return kWaits;
  return launches_work(name) ? kLaunches : kPlain;
}

// Slices of a host track that are no activity of its thread.
bool is_frame_of_recording(SliceKind kind) {
  return kind == SliceKind::trace_window || kind == SliceKind::profiler_range ||
         kind == SliceKind::gpu_user_annotation || kind == SliceKind::overhead;
}

// Slices that were begun and not ended, innermost last, while a track is walked by start.
struct Open {
  std::int64_t end_ns;
  SliceId slice;
  HostWork work;
};

class Walker {
 public:
  explicit Walker(LeafTime& out) : out_(out) {}

  void begin(std::int64_t start_ns) {
    if (!begun_) at_ns_ = start_ns;
    begun_ = true;
    close_until(start_ns);
    if (at_ns_ < start_ns) put(start_ns, SliceId::none, HostWork::nothing);
  }
  HostWork around() const { return open_.empty() ? HostWork::nothing : open_.back().work; }
  void push(Open open) { open_.push_back(open); }
  void finish() {
    close_until(std::numeric_limits<std::int64_t>::max());
    if (!out_.pieces.empty()) out_.pieces.push_back({at_ns_, SliceId::none, HostWork::nothing});
  }

 private:
  // Slices that overlap without nesting: the later one is the leaf, the earlier one again for what it lasts longer.
  void close_until(std::int64_t time_ns) {
    while (!open_.empty() && open_.back().end_ns <= time_ns) {
      put(open_.back().end_ns, open_.back().slice, open_.back().work);
      open_.pop_back();
    }
    if (!open_.empty()) put(time_ns, open_.back().slice, open_.back().work);
  }
  void put(std::int64_t end_ns, SliceId slice, HostWork work) {
    if (end_ns <= at_ns_) return;
    out_.pieces.push_back({at_ns_, slice, work});
    if (!may_wait(work)) {
      if (!out_.active.empty() && out_.active.back().end == at_ns_) {
        out_.active.back().end = end_ns;
      } else {
        out_.active.push_back({at_ns_, end_ns});
      }
    }
    at_ns_ = end_ns;
  }

  LeafTime& out_;
  std::vector<Open> open_;
  std::int64_t at_ns_ = 0;  // pieces are complete up to here
  bool begun_ = false;
};

}  // namespace

std::size_t LeafTime::before(std::int64_t time_ns) const {
  const auto at = std::lower_bound(pieces.begin(), pieces.end(), time_ns,
                                   [](const Leaf& leaf, std::int64_t time) { return leaf.start_ns < time; });
  return at == pieces.begin() ? pieces.size() : static_cast<std::size_t>(at - pieces.begin()) - 1;
}

std::int64_t LeafTime::last_active(std::int64_t time_ns) const {
  const auto at = std::lower_bound(active.begin(), active.end(), time_ns,
                                   [](const Interval& when, std::int64_t time) { return when.start < time; });
  return at == active.begin() ? kAbsent : std::min(time_ns, (at - 1)->end);
}

LeafTimes::LeafTimes(const Trace& trace)
    : trace_(trace),
      by_name_(trace.strings.size(), kUnasked),
      tracks_(trace.tracks.size()),
      made_(trace.tracks.size(), false) {}

const LeafTime& LeafTimes::of(TrackId track) {
  const auto t = static_cast<std::size_t>(track);
  if (!made_[t]) {
    made_[t] = true;
    walk(track, tracks_[t]);
  }
  return tracks_[t];
}

HostWork LeafTimes::work_of(SliceId id, HostWork around) {
  if (around == HostWork::data_loader || around == HostWork::communication) return around;
  std::uint8_t verdict = kPlain;
  if (const StringId name = trace_.slices.name[id]; name != StringId::none) {
    std::uint8_t& known = by_name_[static_cast<std::size_t>(name)];
    if (known == kUnasked) known = verdict_of(trace_.strings[name]);
    verdict = known;
  }
  if (verdict == kDataLoader) return HostWork::data_loader;
  switch (trace_.kind(id)) {
    case SliceKind::runtime:
      if (verdict == kWaits) return HostWork::sync;
      return verdict == kLaunches ? HostWork::launch : HostWork::runtime;
    case SliceKind::python_function: return HostWork::python;
    case SliceKind::user_annotation:  // inside an operator it only names a part of it
      if (verdict == kCommunicates) return HostWork::communication;
      return around == HostWork::op ? HostWork::op : HostWork::python;
    default: return verdict == kCommunicates ? HostWork::communication : HostWork::op;
  }
}

void LeafTimes::walk(TrackId track, LeafTime& out) {
  const auto t = static_cast<std::size_t>(track);
  // As much as there can be: what is not used takes no memory, but growing would copy hundreds of megabytes.
  const std::size_t slices = trace_.track_begin[t + 1] - trace_.track_begin[t];
  out.pieces.reserve(2 * slices + 1);
  out.active.reserve(slices);
  Walker walker(out);
  for (std::uint32_t i = trace_.track_begin[t]; i < trace_.track_begin[t + 1]; i++) {
    const SliceId id = trace_.by_track[i];
    if (is_frame_of_recording(trace_.kind(id))) continue;
    walker.begin(trace_.slices.start_ns[id]);
    walker.push({trace_.slices.end_ns(id), id, work_of(id, walker.around())});
  }
  walker.finish();
}

}  // namespace stepscope
