// Call tree: which slice encloses which on every track.
//
// Per track the slices are ordered by (start, longer first, file order) and walked once with a stack of open slices.
// A slice's parent is the innermost earlier slice that fully encloses it. Slices that overlap without nesting are both
// kept; the later one hangs under whatever encloses it whole, and it is counted.
//
// A device track holds three things that say nothing about each other: work, waits, and host annotations that the
// profiler mirrored there (they start at the first kernel and end after the last one, often cutting through work of
// other ops). Each nests among its own kind only, so an annotation never becomes the parent of a kernel.
#include <array>
#include <limits>
#include <vector>

#include "derive/passes.h"
#include "derive/sort_runs.h"

namespace stepscope::derive {
namespace {

void group_by_track(Trace& trace) {
  const std::size_t rows = trace.slices.size();
  std::vector<std::uint32_t> begin(trace.tracks.size() + 1, 0);
  for (const TrackId track : trace.slices.track.span()) begin[static_cast<std::size_t>(track) + 1]++;
  for (std::size_t i = 1; i < begin.size(); i++) begin[i] += begin[i - 1];
  trace.track_begin = begin;
  trace.by_track.resize(rows);
  for (std::size_t row = 0; row < rows; row++)
    trace.by_track[begin[static_cast<std::size_t>(trace.slices.track[row])]++] = static_cast<SliceId>(row);
}

struct Entry {
  std::int64_t start_ns;
  std::int64_t dur_ns;
  SliceId id;
};

bool before(const Entry& a, const Entry& b) {
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.dur_ns > b.dur_ns;
}

// The slices of one track in file order become ordered by (start, longer first, file order).
void sort_track(const Slices& slices, SliceId* first, SliceId* last, std::vector<Entry>& entries) {
  entries.clear();
  bool sorted = true;
  for (const SliceId* id = first; id != last; id++) {
    entries.push_back({slices.start_ns[*id], slices.dur_ns[*id], *id});
    if (sorted && id != first) sorted = !before(entries.back(), *(entries.end() - 2));
  }
  if (sorted) return;
  sort_runs(entries, before);
  for (const Entry& entry : entries) *first++ = entry.id;
}

constexpr std::size_t kLanes = 3;

std::vector<std::uint8_t> device_lanes(const Trace& trace) {
  std::vector<std::uint8_t> lanes;
  for (const Category& category : trace.categories)
    lanes.push_back(category.kind == SliceKind::sync ? 1 : category.kind == SliceKind::gpu_user_annotation ? 2 : 0);
  return lanes;
}

struct Open {
  std::int64_t end_ns;
  SliceId id;
};

// Puts `id` under the innermost open slice that encloses it; true when it cut an open one on the way.
//
// The stack's ends never rise from bottom to top: an open slice that ends before a later one does can never again be
// the innermost encloser of anything, so it is dropped. That keeps the walk linear whatever overlaps.
bool nest(Slices& slices, SliceId id, std::vector<Open>& open) {
  const std::int64_t start = slices.start_ns[id], end = start + slices.dur_ns[id];
  bool cut = false;
  while (!open.empty() && (open.back().end_ns <= start || open.back().end_ns < end)) {
    cut = cut || open.back().end_ns > start;
    open.pop_back();
  }
  constexpr std::uint16_t kDeepest = std::numeric_limits<std::uint16_t>::max();
  slices.parent[id] = open.empty() ? SliceId::none : open.back().id;
  const std::uint16_t above = open.empty() ? 0 : slices.depth[open.back().id];
  slices.depth[id] = open.empty() ? 0 : above == kDeepest ? kDeepest : static_cast<std::uint16_t>(above + 1);
  open.push_back({end, id});
  return cut;
}

std::uint64_t nest_track(Trace& trace, std::span<const SliceId> ids, bool device,
                         const std::vector<std::uint8_t>& lanes) {
  std::array<std::vector<Open>, kLanes> open;
  std::uint64_t cuts = 0;
  for (const SliceId id : ids) {
    const CategoryId category = trace.slices.category[id];
    const bool own_lane = device && category != CategoryId::none;
    cuts += nest(trace.slices, id, open[own_lane ? lanes[static_cast<std::size_t>(category)] : 0]);
  }
  return cuts;
}

}  // namespace

Result<void> call_tree(Trace& trace, const DeriveOptions&) {
  group_by_track(trace);
  trace.slices.parent.resize(trace.slices.size(), SliceId::none);
  trace.slices.depth.resize(trace.slices.size(), 0);
  const std::vector<std::uint8_t> lanes = device_lanes(trace);
  std::vector<Entry> entries;
  std::uint64_t cuts = 0;
  for (std::size_t track = 0; track < trace.tracks.size(); track++) {
    SliceId* ids = trace.by_track.data();
    sort_track(trace.slices, ids + trace.track_begin[track], ids + trace.track_begin[track + 1], entries);
    const std::span<const SliceId> own{ids + trace.track_begin[track], ids + trace.track_begin[track + 1]};
    cuts += nest_track(trace, own, trace.tracks[track].device, lanes);
  }
  trace.links.partial_overlaps = cuts;
  if (cuts == 0) return {};
  Issue issue;
  issue.code = "partial_overlap";
  issue.sentence = "Slices overlap an earlier slice of their track without lying inside it; both are kept";
  issue.count = cuts;
  issue.file = trace.source.path;
  add_issue(trace.issues, issue);
  return {};
}

}  // namespace stepscope::derive
