#include "model/critical_path.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/windows.h"

namespace stepscope {
namespace {

struct ClassText {
  std::string_view name, words, meaning;
  StepPart part;
};

constexpr std::array<ClassText, kPathClasses> kClassTexts{{
    {"host_op", "Operators on the host", "the host was running an operator", StepPart::cpu_op},
    {"python", "Python", "the host was in Python code or in an annotated range, outside any operator", StepPart::other},
    {"data_loading", "Waiting for the data loader", "the host waited for the data loader", StepPart::dataloader},
    {"runtime", "Runtime calls", "the host was in a runtime call that neither launches nor waits (allocate, record …)",
     StepPart::runtime},
    {"launch", "Launching", "the host was launching, or the work that it had launched was on its way to the device",
     StepPart::runtime},
    {"sync_wait", "Waiting in a synchronizing call",
     "the host was in a synchronizing call, and no device work that it waited for was left", StepPart::runtime},
    {"compute", "Compute kernels", "a compute or unclassified kernel ran", StepPart::kernel},
    {"communication", "Communication", "communication ran, on the device or on the host", StepPart::communication},
    {"copy", "Memory copies", "a memory copy ran", StepPart::copy},
    {"set", "Memory fills", "a memory fill ran", StepPart::set},
    {"device_gap", "Gaps between device work", "the device went from one piece of queued work to the next",
     StepPart::other},
    {"unknown", "Unexplained", "nothing was recorded, or nothing shows what was waited for", StepPart::other},
}};

// A device needs a few µs between two pieces of queued work; a longer wait has another reason.
constexpr std::int64_t kHandOverNs = 5'000;
// The host polls for device work (a flag in its memory) where it does nothing for so long, and began to soon after
// launching the work; it goes on about when the work ends, to within this part of the wait.
constexpr std::int64_t kShortestPollNs = 200'000, kPollBeginsNs = 50'000, kPollPrecision = 20;
// Turns at one instant before the walk goes back to the main thread, and how often that may happen before it gives up:
// edges of damaged recordings can run in circles.
constexpr int kMostTurns = 4096, kMostCircles = 100;
// So much work that ended just before is looked at.
constexpr int kLook = 64;

PathClass class_of(HostWork work) {
  static constexpr std::array classes{PathClass::unknown,      PathClass::python,       PathClass::host_op,
                                      PathClass::runtime,      PathClass::launch,       PathClass::sync_wait,
                                      PathClass::data_loading, PathClass::communication};
  return classes[static_cast<std::size_t>(work)];
}

PathClass class_of(DeviceClass device_class) {
  switch (device_class) {
    case DeviceClass::communication: return PathClass::communication;
    case DeviceClass::memory_copy: return PathClass::copy;
    case DeviceClass::memory_set: return PathClass::set;
    default: return PathClass::compute;
  }
}

constexpr std::uint32_t kNone = Dependencies::none;

}  // namespace

std::string_view to_string(PathClass path_class) { return kClassTexts[static_cast<std::size_t>(path_class)].name; }
std::string_view meaning_of(PathClass path_class) { return kClassTexts[static_cast<std::size_t>(path_class)].meaning; }
std::string_view words_of(PathClass path_class) { return kClassTexts[static_cast<std::size_t>(path_class)].words; }
StepPart step_part(PathClass path_class) { return kClassTexts[static_cast<std::size_t>(path_class)].part; }

PathTimes CriticalPath::times() const {
  PathTimes times{};
  for (const PathSegment& segment : segments) {
    times[static_cast<std::size_t>(segment.what)] += segment.when.end - segment.when.start;
  }
  return times;
}

// One walk, backwards. The cursor is an instant (all later ones are done) and where the path is just before it: on a
// thread, or with a piece of device work.
class PathWalk {
 public:
  PathWalk(PathFinder& find, Interval window) : find_(find), trace_(find.trace_), edges_(find.dependencies_) {
    path_.window = window;
    at_ns_ = window.end;
  }

  CriticalPath from_thread(TrackId track) {
    track_ = track;
    return run();
  }
  CriticalPath from_device() {
    go_to_earlier_work();
    return run();
  }
  CriticalPath from(TrackId host) { return host != TrackId::none ? from_thread(host) : from_device(); }
  PathTimes times_from(TrackId host) {
    kept_ = false;
    from(host);
    return times_;
  }

 private:
  std::int64_t start(std::uint32_t row) const { return trace_.slices.start_ns[trace_.device.slice[row]]; }
  std::int64_t end(std::uint32_t row) const { return trace_.slices.end_ns(trace_.device.slice[row]); }
  bool done() const { return at_ns_ <= path_.window.start; }

  CriticalPath run();
  void device_turn();
  void thread_turn();
  bool change_thread(const Leaf& leaf, const LeafTime& leaves);
  bool follow_poll(const Leaf& leaf);
  void follow_launch(SliceId launch, std::uint32_t row);
  void follow_queue(std::uint32_t before, WaitEvidence why, std::uint32_t row);
  std::uint32_t ended_just_before(std::uint32_t row, std::int64_t after_ns) const;
  void go_to_earlier_work();

  // Puts the time from `from_ns` to the cursor on the path and moves the cursor there.
  void put(std::int64_t from_ns, SliceId slice, TrackId track, PathClass what, WaitEvidence why) {
    from_ns = std::max(from_ns, path_.window.start);
    if (from_ns >= at_ns_) return;
    if (kept_) path_.segments.push_back({{from_ns, at_ns_}, slice, track, what, why});
    times_[static_cast<std::size_t>(what)] += at_ns_ - from_ns;
    at_ns_ = from_ns;
  }
  // What the segment put last waited for is known only when the walk goes on.
  void explain(WaitEvidence why) {
    if (!path_.segments.empty()) path_.segments.back().why = why;
  }

  PathFinder& find_;
  const Trace& trace_;
  const Dependencies& edges_;
  CriticalPath path_;
  bool kept_ = true;  // else only the times are wanted
  PathTimes times_{};
  std::int64_t at_ns_ = 0;
  std::uint32_t row_ = kNone;      // the device work that the path is with, or
  TrackId track_ = TrackId::none;  // the thread that it is on; neither: nothing is known any more
};

CriticalPath PathWalk::run() {
  int turns = 0, circles = 0;
  for (std::int64_t last = at_ns_; !done(); last = at_ns_) {
    if (row_ != kNone) {
      device_turn();
    } else if (track_ != TrackId::none) {
      thread_turn();
    } else {
      put(path_.window.start, SliceId::none, TrackId::none, PathClass::unknown, WaitEvidence::none);
    }
    turns = at_ns_ < last ? 0 : turns + 1;
    if (turns > kMostTurns) {
      turns = 0;
      row_ = kNone;
      track_ = ++circles > kMostCircles ? TrackId::none : find_.main_;
    }
  }
  std::reverse(path_.segments.begin(), path_.segments.end());
  if (!path_.segments.empty()) path_.segments.front().why = WaitEvidence::none;  // the window begins
  return std::move(path_);
}

// The work that ended last up to the cursor, whatever it was: nothing shows what else was waited for.
void PathWalk::go_to_earlier_work() {
  const auto& rows = edges_.by_end;
  auto after = std::upper_bound(rows.begin(), rows.end(), at_ns_,
                                [&](std::int64_t time, std::uint32_t row) { return time < end(row); });
  while (after != rows.begin() && start(*(after - 1)) >= at_ns_) --after;  // of no length
  row_ = kNone;
  track_ = find_.main_;
  if (after == rows.begin()) return;
  const std::uint32_t row = *(after - 1);
  const SliceId slice = trace_.device.slice[row];
  put(end(row), SliceId::none, trace_.slices.track[slice], PathClass::unknown, WaitEvidence::none);
  row_ = row;
  track_ = TrackId::none;
}

void PathWalk::device_turn() {
  const std::uint32_t row = row_;
  const SliceId slice = trace_.device.slice[row];
  const auto device_class = static_cast<DeviceClass>(trace_.device.device_class[row]);
  put(start(row), slice, trace_.slices.track[slice], class_of(device_class), WaitEvidence::none);
  if (done()) return;

  const std::uint32_t on_stream = edges_.stream_before[row], by_event = edges_.event_before[row];
  const SliceId launch = trace_.device.launch[row];
  const bool event_binds = by_event != kNone && (on_stream == kNone || end(by_event) > end(on_stream));
  const std::uint32_t before = event_binds ? by_event : on_stream;
  const std::int64_t queued_until = before == kNone ? kAbsent : std::min(end(before), at_ns_);
  const std::int64_t called = launch == SliceId::none ? kAbsent : trace_.slices.start_ns[launch];
  const bool same_graph = before != kNone && launch != SliceId::none && trace_.device.launch[before] == launch;
  const bool back_to_back =
      before != kNone && at_ns_ - queued_until <= kHandOverNs && (same_graph || called < queued_until);
  const bool just_launched = called != kAbsent && !same_graph && at_ns_ - called <= edges_.launch_latency_ns;
  if (!back_to_back && !just_launched) {
    const std::uint32_t other = ended_just_before(row, std::max(queued_until, called));
    if (other != kNone) return follow_queue(other, WaitEvidence::end_to_start, row);
  }
  const bool into_idle = called != kAbsent && (before == kNone || called >= queued_until);
  if (!back_to_back && (just_launched || into_idle)) {
    follow_launch(launch, row);
  } else if (before != kNone) {
    follow_queue(before, event_binds ? WaitEvidence::event_wait : WaitEvidence::stream_order, row);
  } else {
    go_to_earlier_work();
  }
}

void PathWalk::follow_launch(SliceId launch, std::uint32_t row) {
  explain(WaitEvidence::launch);
  const TrackId track = trace_.slices.track[launch];
  put(trace_.slices.start_ns[launch], launch, trace_.slices.track[trace_.device.slice[row]], PathClass::launch,
      WaitEvidence::program_order);
  row_ = kNone;
  track_ = track;
}

void PathWalk::follow_queue(std::uint32_t before, WaitEvidence why, std::uint32_t row) {
  explain(why);
  const SliceId slice = trace_.device.slice[row];
  const bool explained = at_ns_ - end(before) <= kHandOverNs || why == WaitEvidence::event_wait;
  put(end(before), slice, trace_.slices.track[slice], explained ? PathClass::device_gap : PathClass::unknown, why);
  row_ = before;
}

// Work of another stream that ended after `after_ns` and at most the usual hand-over before `row` started.
std::uint32_t PathWalk::ended_just_before(std::uint32_t row, std::int64_t after_ns) const {
  const auto& rows = edges_.by_end;
  auto at = std::upper_bound(rows.begin(), rows.end(), at_ns_,
                             [&](std::int64_t time, std::uint32_t other) { return time < end(other); });
  const std::int64_t earliest = std::max(after_ns, at_ns_ - kHandOverNs);
  for (int looked = 0; looked < kLook && at != rows.begin() && end(*--at) > earliest; looked++) {
    if (start(*at) < at_ns_ && trace_.device.device[*at] == trace_.device.device[row]) return *at;
  }
  return kNone;
}

// Where `leaf` may be a wait: with the thread that was active after this one last was. True when the path went there.
bool PathWalk::change_thread(const Leaf& leaf, const LeafTime& leaves) {
  const auto t = static_cast<std::size_t>(track_);
  const std::int64_t last = leaves.last_active(at_ns_);
  if (const TrackId feeder = edges_.feeder[t]; feeder != TrackId::none) {
    if (find_.leaves_.of(feeder).last_active(at_ns_) > last) {
      explain(WaitEvidence::autograd);
      track_ = feeder;
      return true;
    }
  }
  TrackId worker = TrackId::none;
  std::int64_t until = std::max(last, leaf.start_ns);
  for (const TrackId candidate : find_.workers_[t]) {
    const std::int64_t active = find_.leaves_.of(candidate).last_active(at_ns_);
    if (active > until) worker = candidate, until = active;
  }
  if (worker == TrackId::none) return false;
  put(until, leaf.slice, track_, class_of(leaf.work), WaitEvidence::autograd);
  explain(WaitEvidence::autograd);
  track_ = worker;
  return true;
}

// Where `leaf` may be a wait: with the work that the thread launched last. True when the path went there.
bool PathWalk::follow_poll(const Leaf& leaf) {
  const std::int64_t waited = at_ns_ - leaf.start_ns;
  if (waited < kShortestPollNs) return false;
  const auto& rows = edges_.launched[static_cast<std::size_t>(track_)];
  const auto after = std::lower_bound(rows.begin(), rows.end(), leaf.start_ns, [&](std::uint32_t row, std::int64_t t) {
    return trace_.slices.start_ns[trace_.device.launch[row]] < t;
  });
  if (after == rows.begin()) return false;
  const std::uint32_t row = *(after - 1);
  const std::int64_t called = trace_.slices.end_ns(trace_.device.launch[row]);
  const std::int64_t slack = waited / kPollPrecision;
  if (called + kPollBeginsNs < leaf.start_ns || start(row) >= at_ns_) return false;
  if (end(row) < at_ns_ - slack || end(row) > at_ns_ + slack) return false;
  put(std::min(end(row), at_ns_), leaf.slice, track_, PathClass::sync_wait, WaitEvidence::polled);
  explain(WaitEvidence::polled);
  row_ = row;
  track_ = TrackId::none;
  return true;
}

void PathWalk::thread_turn() {
  const LeafTime& leaves = find_.leaves_.of(track_);
  const std::size_t at = leaves.before(at_ns_);
  if (at >= leaves.pieces.size()) {  // the thread had not begun
    if (change_thread({path_.window.start, SliceId::none, HostWork::nothing}, leaves)) return;
    explain(WaitEvidence::none);
    track_ = track_ == find_.main_ ? TrackId::none : find_.main_;
    return;
  }
  const Leaf& leaf = leaves.pieces[at];
  if (may_wait(leaf.work) && (change_thread(leaf, leaves) || follow_poll(leaf))) return;
  if (leaf.slice != SliceId::none && !may_wait(leaf.work)) {
    const std::uint32_t row = edges_.released_by(leaf.slice);
    if (row != kNone && end(row) > leaf.start_ns && start(row) < at_ns_) {
      put(std::min(end(row), at_ns_), leaf.slice, track_, PathClass::sync_wait, WaitEvidence::sync_call);
      explain(WaitEvidence::sync_call);
      row_ = row;
      track_ = TrackId::none;
      return;
    }
  }
  put(leaf.start_ns, leaf.slice, track_, class_of(leaf.work), WaitEvidence::program_order);
}

PathFinder::PathFinder(const Trace& trace)
    : trace_(trace), dependencies_(stepscope::dependencies(trace)), leaves_(trace), workers_(trace.tracks.size()) {
  std::uint32_t most = 0;
  for (std::size_t t = 0; t < trace.tracks.size(); t++) {
    const std::uint32_t slices = trace.track_begin[t + 1] - trace.track_begin[t];
    if (trace.tracks[t].device || slices <= most) continue;
    most = slices;
    main_ = static_cast<TrackId>(t);
  }
  for (std::size_t t = 0; t < dependencies_.feeder.size(); t++) {
    const TrackId feeder = dependencies_.feeder[t];
    if (feeder != TrackId::none) workers_[static_cast<std::size_t>(feeder)].push_back(static_cast<TrackId>(t));
  }
}

CriticalPath PathFinder::within(Interval window, TrackId host) {
  if (window.end <= window.start) return {.window = window, .segments = {}};
  return PathWalk(*this, window).from(host);
}

CriticalPath PathFinder::whole() {
  const auto [window, host] = whole_window();
  return within(window, host);
}

PathTimes PathFinder::whole_times() {
  const auto [window, host] = whole_window();
  return window.end > window.start ? PathWalk(*this, window).times_from(host) : PathTimes{};
}

std::pair<Interval, TrackId> PathFinder::whole_window() {
  Interval window{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  TrackId last = TrackId::none;
  for (std::size_t t = 0; t < trace_.tracks.size(); t++) {
    if (trace_.tracks[t].device) continue;
    const LeafTime& leaves = leaves_.of(static_cast<TrackId>(t));
    if (leaves.pieces.empty()) continue;
    window.start = std::min(window.start, leaves.pieces.front().start_ns);
    if (leaves.pieces.back().start_ns > window.end) {
      window.end = leaves.pieces.back().start_ns;
      last = static_cast<TrackId>(t);
    }
  }
  if (!dependencies_.by_start.empty()) {
    const DeviceRows& rows = trace_.device;
    window.start = std::min(window.start, trace_.slices.start_ns[rows.slice[dependencies_.by_start.front()]]);
    const std::int64_t end = trace_.slices.end_ns(rows.slice[dependencies_.by_end.back()]);
    if (end > window.end) {
      window.end = end;
      last = TrackId::none;
    }
  }
  return {window.end > window.start ? window : Interval{}, last};
}

void PathFinder::each_step(const std::function<void(std::size_t step, const CriticalPath& path)>& take) {
  const std::vector<Interval> walls = step_walls(trace_);
  for (std::size_t i = 0; i < walls.size(); i++) {
    const Step& step = trace_.steps[i];
    const TrackId thread = step.track != TrackId::none ? step.track : main_;
    take(i, within(walls[i], step.end_ns >= walls[i].end ? thread : TrackId::none));
  }
}

}  // namespace stepscope
