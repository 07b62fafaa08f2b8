#include "derive/step_marks.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "model/serving_marks.h"

namespace stepscope::derive {
namespace {

enum class Mark : std::uint8_t { unasked, none, profiler, optimizer, serving };

Mark mark_of(std::string_view name) {
  if (name.starts_with("ProfilerStep#") || name == "ProfilerStep") return Mark::profiler;
  if (name.starts_with("Optimizer.step#")) return Mark::optimizer;
  if (serving_mark(name)) return Mark::serving;
  return Mark::none;
}

bool can_mark(SliceKind kind) { return kind == SliceKind::user_annotation || kind == SliceKind::cpu_op; }

std::vector<SliceId> by_start(const Trace& trace, std::vector<SliceId> ids) {
  std::stable_sort(ids.begin(), ids.end(), [&](SliceId a, SliceId b) {
    const Slices& s = trace.slices;
    return s.start_ns[a] != s.start_ns[b] ? s.start_ns[a] < s.start_ns[b] : s.dur_ns[a] > s.dur_ns[b];
  });
  return ids;
}

// The track with the most marks; of equals the one with the longest.
TrackId main_track(const Trace& trace, const std::vector<SliceId>& ids) {
  std::map<TrackId, std::pair<std::size_t, std::int64_t>> tally;
  for (const SliceId id : ids) {
    auto& [count, total] = tally[trace.slices.track[id]];
    count++;
    total += trace.slices.dur_ns[id];
  }
  const auto most =
      std::max_element(tally.begin(), tally.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == tally.end() ? TrackId::none : most->first;
}

// One set of steps: those of the main track, and of other threads only what starts outside all of these.
std::vector<SliceId> one_set(const Trace& trace, const std::vector<SliceId>& ids) {
  const TrackId track = main_track(trace, ids);
  std::vector<SliceId> own, others, all;
  for (const SliceId id : by_start(trace, ids)) {
    if (trace.slices.track[id] != track) {
      others.push_back(id);
    } else if (own.empty() || trace.slices.start_ns[id] >= trace.slices.end_ns(own.back())) {
      own.push_back(id);
    }
  }
  all = own;
  for (const SliceId id : others) {
    const auto after = std::upper_bound(own.begin(), own.end(), trace.slices.start_ns[id],
                                        [&](std::int64_t t, SliceId o) { return t < trace.slices.start_ns[o]; });
    const bool inside = after != own.begin() && trace.slices.end_ns(*(after - 1)) > trace.slices.start_ns[id];
    const bool reaches = after != own.end() && trace.slices.start_ns[*after] < trace.slices.end_ns(id);
    const bool taken = all.size() > own.size() && trace.slices.end_ns(all.back()) > trace.slices.start_ns[id];
    if (!inside && !reaches && !taken) all.push_back(id);
  }
  return by_start(trace, all);
}

// Of several optimizers in a round only the last ends it: the name that is seen most, of equals the one seen last.
std::vector<SliceId> last_optimizer(const Trace& trace, const std::vector<SliceId>& ids) {
  std::map<StringId, std::pair<std::size_t, std::int64_t>> tally;
  for (const SliceId id : ids) {
    auto& [count, end] = tally[trace.slices.name[id]];
    count++;
    end = std::max(end, trace.slices.end_ns(id));
  }
  const auto best =
      std::max_element(tally.begin(), tally.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<SliceId> kept;
  for (const SliceId id : ids)
    if (trace.slices.name[id] == best->first) kept.push_back(id);
  return kept;
}

constexpr std::size_t kFewestRepeats = 3;

// Does this series of slices look like steps: enough of them, of like length, back to back through the recording?
bool fills_recording(const Trace& trace, const std::vector<SliceId>& ids, const Window& host) {
  if (ids.size() < kFewestRepeats) return false;
  std::int64_t total = 0, longest = 0;
  for (const SliceId id : ids) {
    total += trace.slices.dur_ns[id];
    longest = std::max(longest, trace.slices.dur_ns[id]);
  }
  const double span = static_cast<double>(trace.slices.end_ns(ids.back()) - trace.slices.start_ns[ids.front()]);
  const double window = static_cast<double>(host.end_ns - host.start_ns);
  const double mean = static_cast<double>(total) / static_cast<double>(ids.size());
  return static_cast<double>(total) >= 0.8 * span && span >= 0.6 * window && static_cast<double>(longest) <= 4 * mean;
}

std::vector<SliceId> repeated_annotation(const Trace& trace) {
  const Window host = host_window(trace);
  constexpr std::uint16_t kDeepest = 2;
  std::map<std::pair<TrackId, StringId>, std::vector<SliceId>> series;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    if (trace.kind(id) == SliceKind::user_annotation && trace.slices.depth[id] <= kDeepest)
      series[{trace.slices.track[id], trace.slices.name[id]}].push_back(id);
  }
  std::map<StringId, std::size_t> on_all_tracks;
  for (const auto& [key, members] : series) on_all_tracks[key.second] += members.size();
  std::vector<SliceId> best;
  std::int64_t best_time = 0;
  for (const auto& [key, members] : series) {
    // What several threads do alike is a worker's round, not a step of the program.
    if (members.size() < kFewestRepeats || members.size() < on_all_tracks[key.second]) continue;
    const std::vector<SliceId> ids = one_set(trace, members);
    if (!fills_recording(trace, ids, host)) continue;
    const std::int64_t time = trace.slices.end_ns(ids.back()) - trace.slices.start_ns[ids.front()];
    if (time > best_time) best = ids, best_time = time;
  }
  return best;
}

}  // namespace

StepMarks find_step_marks(const Trace& trace) {
  std::vector<Mark> verdict(trace.strings.size(), Mark::unasked);
  std::vector<SliceId> profiler, optimizer, serving;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    const StringId name = trace.slices.name[id];
    if (name == StringId::none || !can_mark(trace.kind(id))) continue;
    Mark& mark = verdict[static_cast<std::size_t>(name)];
    if (mark == Mark::unasked) mark = mark_of(trace.strings[name]);
    if (mark == Mark::profiler) profiler.push_back(id);
    if (mark == Mark::optimizer) optimizer.push_back(id);
    if (mark == Mark::serving) serving.push_back(id);
  }
  StepMarks marks;
  marks.profiler = one_set(trace, profiler);
  if (!optimizer.empty()) marks.optimizer = one_set(trace, last_optimizer(trace, optimizer));
  marks.serving = one_set(trace, serving);
  if (marks.profiler.empty() && marks.optimizer.size() < 2 && marks.serving.empty())
    marks.repeated = repeated_annotation(trace);
  return marks;
}

Window host_window(const Trace& trace) {
  Window window;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    const SliceKind kind = trace.kind(id);
    if (trace.tracks[static_cast<std::size_t>(trace.slices.track[id])].device) continue;
    if (kind == SliceKind::trace_window || kind == SliceKind::overhead) continue;
    window.add(trace.slices.start_ns[id], trace.slices.end_ns(id));
  }
  return window;
}

Window device_window(const Trace& trace) {
  Window window;
  for (const SliceId id : trace.device.slice.span())
    if (is_device_work(trace.kind(id))) window.add(trace.slices.start_ns[id], trace.slices.end_ns(id));
  return window;
}

Window recording_window(const Trace& trace) {
  Window told;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    if (trace.kind(id) == SliceKind::trace_window) told.add(trace.slices.start_ns[id], trace.slices.end_ns(id));
  }
  if (!told.empty()) return told;
  return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
}

bool starts_after(const Trace& trace, TrackId track, std::int64_t time_ns) {
  const std::size_t index = static_cast<std::size_t>(track);
  const std::uint32_t begin = trace.track_begin[index], end = trace.track_begin[index + 1];
  return begin != end && trace.slices.start_ns[trace.by_track[end - 1]] >= time_ns;
}

std::int64_t number_after_hash(std::string_view name) {
  const std::size_t hash = name.find('#');
  if (hash == std::string_view::npos) return kAbsent;
  std::int64_t number = kAbsent;
  const auto parsed = std::from_chars(name.data() + hash + 1, name.data() + name.size(), number);
  return parsed.ec == std::errc() ? number : kAbsent;
}

}  // namespace stepscope::derive
