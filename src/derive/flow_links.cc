#include "derive/flow_links.h"

#include <algorithm>

#include "derive/sort_runs.h"
#include "model/lookup.h"

namespace stepscope::derive {
namespace {

struct End {
  CategoryId category;
  std::int64_t id;
  std::int64_t time_ns;
  TrackId track;
};

bool before(const End& a, const End& b) {
  if (a.category != b.category) return a.category < b.category;
  return a.id != b.id ? a.id < b.id : a.time_ns < b.time_ns;
}

bool same_arrow(const End& a, const End& b) { return a.category == b.category && a.id == b.id; }

End end_of(const Flows& flows, std::size_t row) {
  return {flows.category[row], flows.id[row], flows.time_ns[row], flows.track[row]};
}

std::vector<End> starts_of(const Flows& flows) {
  std::vector<End> starts;
  for (std::size_t row = 0; row < flows.size(); row++)
    if (flows.phase[row] == 's') starts.push_back(end_of(flows, row));
  sort_runs(starts, before);
  return starts;
}

struct Unlinked {
  TrackId track;
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint32_t row;
};

bool earlier(const Unlinked& a, const Unlinked& b) {
  return a.track != b.track ? a.track < b.track : a.start_ns < b.start_ns;
}

std::vector<Unlinked> unlinked_work(const Trace& trace) {
  std::vector<Unlinked> found;
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId id = trace.device.slice[row];
    if (trace.device.launch[row] != SliceId::none || !is_device_work(trace.kind(id))) continue;
    found.push_back(
        {trace.slices.track[id], trace.slices.start_ns[id], trace.slices.end_ns(id), static_cast<std::uint32_t>(row)});
  }
  sort_runs(found, earlier);
  return found;
}

// The unlinked work at the end of an arrow: it starts there, or is running then. nullptr: there is none.
const Unlinked* work_at(const std::vector<Unlinked>& works, TrackId track, std::int64_t time_ns) {
  const auto after = std::upper_bound(works.begin(), works.end(), Unlinked{track, time_ns, 0, 0}, earlier);
  if (after == works.begin()) return nullptr;
  const Unlinked& work = *(after - 1);
  return work.track == track && (work.start_ns == time_ns || work.end_ns > time_ns) ? &work : nullptr;
}

bool is_host_call(SliceKind kind) {
  return kind == SliceKind::runtime || kind == SliceKind::cpu_op || kind == SliceKind::user_annotation;
}

}  // namespace

std::vector<Arrow> arrows(const Trace& trace, const std::function<bool(std::size_t flow)>& wanted) {
  std::vector<Arrow> found;
  std::vector<End> starts;
  for (std::size_t row = 0; row < trace.flows.size(); row++) {
    if (trace.flows.phase[row] != 'f' || !wanted(row)) continue;
    if (starts.empty()) starts = starts_of(trace.flows);
    const End end = end_of(trace.flows, row);
    const auto after = std::upper_bound(starts.begin(), starts.end(), end, before);
    const bool has_earlier = after != starts.begin() && same_arrow(*(after - 1), end);
    if (!has_earlier && (after == starts.end() || !same_arrow(*after, end))) continue;
    const End& start = has_earlier ? *(after - 1) : *after;
    const SliceId from = slice_at(trace, start.track, start.time_ns);
    if (from != SliceId::none) found.push_back({from, row});
  }
  return found;
}

std::uint64_t link_by_flows(Trace& trace) {
  if (trace.flows.size() == 0) return 0;
  const std::vector<Unlinked> works = unlinked_work(trace);
  if (works.empty()) return 0;
  const auto work_of = [&](std::size_t flow) {
    return work_at(works, trace.flows.track[flow], trace.flows.time_ns[flow]);
  };
  std::uint64_t linked = 0;
  for (const Arrow& arrow : arrows(trace, [&](std::size_t flow) { return work_of(flow) != nullptr; })) {
    SliceId& launch = trace.device.launch[work_of(arrow.end)->row];
    if (launch != SliceId::none || !is_host_call(trace.kind(arrow.from))) continue;
    launch = arrow.from;
    linked++;
  }
  return linked;
}

}  // namespace stepscope::derive
