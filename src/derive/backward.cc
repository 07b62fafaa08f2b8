// Forward ↔ backward: which op of the forward pass each backward op belongs to.
//
// An autograd node takes the sequence number that was current when its forward op ran, so the forward op is the last
// one with that number before the backward op. The numbers count per thread; the backward op names its forward thread
// only by torch's own thread number, so which track that is, is settled by a vote over all numbers. Arrows of category
// fwdbwd add what has no sequence number.
#include <algorithm>
#include <map>
#include <utility>

#include "derive/flow_links.h"
#include "derive/passes.h"
#include "derive/sort_runs.h"
#include "model/lookup.h"

namespace stepscope::derive {
namespace {

struct Node {
  std::int64_t sequence;
  std::int64_t fwd_thread;  // 0: a forward op
  std::int64_t start_ns;
  std::int64_t end_ns;
  TrackId track;
  SliceId id;
};

bool before(const Node& a, const Node& b) {
  if (a.sequence != b.sequence) return a.sequence < b.sequence;
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
}

std::vector<Node> nodes_by_sequence(const Trace& trace) {
  std::vector<Node> nodes;
  bool any_backward = false;
  const Ops& ops = trace.ops;
  for (std::size_t row = 0; row < ops.size(); row++) {
    const SliceId id = ops.slice[row];
    if (!ops.sequence.has(row) || ops.sequence[row] < 0 || trace.kind(id) != SliceKind::cpu_op) continue;
    const std::int64_t thread = std::max<std::int64_t>(ops.fwd_thread[row], 0);
    any_backward = any_backward || thread > 0;
    nodes.push_back(
        {ops.sequence[row], thread, trace.slices.start_ns[id], trace.slices.end_ns(id), trace.slices.track[id], id});
  }
  if (!any_backward) nodes.clear();
  sort_runs(nodes, before);
  return nodes;
}

using Votes = std::map<std::pair<std::int64_t, TrackId>, std::uint64_t>;

// How many nodes of one sequence number are looked at for one backward op: several threads may share a number.
constexpr int kLook = 64;

// Calls `seen(forward)` for the forward ops that share `at`'s number and ran before it, latest first, until it is true.
template <class Seen>
void forwards_before(const std::vector<Node>& nodes, std::size_t at, Seen seen) {
  for (std::size_t i = at; i-- > 0 && at - i <= kLook && nodes[i].sequence == nodes[at].sequence;)
    if (nodes[i].fwd_thread == 0 && seen(nodes[i])) return;
}

Votes vote(const std::vector<Node>& nodes) {
  Votes votes;
  for (std::size_t i = 0; i < nodes.size(); i++) {
    if (nodes[i].fwd_thread == 0) continue;
    TrackId last = TrackId::none;
    forwards_before(nodes, i, [&](const Node& forward) {
      if (forward.track != last) votes[{nodes[i].fwd_thread, forward.track}]++;
      last = forward.track;
      return false;
    });
  }
  return votes;
}

std::map<std::int64_t, TrackId> forward_tracks(const Votes& votes) {
  std::map<std::int64_t, std::pair<std::uint64_t, TrackId>> best;
  for (const auto& [who, count] : votes)
    if (auto& entry = best[who.first]; count > entry.first) entry = {count, who.second};
  std::map<std::int64_t, TrackId> tracks;
  for (const auto& [thread, entry] : best) tracks[thread] = entry.second;
  return tracks;
}

void link_by_sequence(Trace& trace) {
  const std::vector<Node> nodes = nodes_by_sequence(trace);
  if (nodes.empty()) return;
  const std::map<std::int64_t, TrackId> tracks = forward_tracks(vote(nodes));
  const Node* outer = nullptr;  // the last backward op linked: what runs inside it is part of it
  for (std::size_t i = 0; i < nodes.size(); i++) {
    const Node& node = nodes[i];
    if (node.fwd_thread == 0) continue;
    if (outer != nullptr && outer->sequence == node.sequence && outer->track == node.track &&
        node.start_ns < outer->end_ns)
      continue;
    const auto track = tracks.find(node.fwd_thread);
    if (track == tracks.end()) continue;
    forwards_before(nodes, i, [&](const Node& forward) {
      if (forward.track != track->second) return false;
      trace.backward.push_back({forward.id, node.id});
      outer = &node;
      return true;
    });
  }
}

// Adds the arrows whose backward op (or the op around it) is not linked yet.
void link_by_arrows(Trace& trace) {
  std::vector<bool> fwdbwd;
  for (const Category& category : trace.categories) fwdbwd.push_back(trace.strings[category.name] == "fwdbwd");
  const auto wanted = [&](std::size_t flow) {
    const std::size_t category = static_cast<std::size_t>(trace.flows.category[flow]);
    return category < fwdbwd.size() && fwdbwd[category];
  };
  const std::vector<Arrow> found = arrows(trace, wanted);
  if (found.empty()) return;
  std::vector<SliceId> linked;
  for (const Backward& pair : trace.backward) linked.push_back(pair.backward);
  std::sort(linked.begin(), linked.end());
  const auto is_linked = [&](SliceId id) { return std::binary_search(linked.begin(), linked.end(), id); };
  for (const Arrow& arrow : found) {
    const SliceId to = slice_at(trace, trace.flows.track[arrow.end], trace.flows.time_ns[arrow.end]);
    if (to == SliceId::none || is_linked(to)) continue;
    const SliceId around = trace.slices.parent[to];
    if (around == SliceId::none || !is_linked(around)) trace.backward.push_back({arrow.from, to});
  }
}

}  // namespace

Result<void> backward(Trace& trace, const DeriveOptions&) {
  link_by_sequence(trace);
  link_by_arrows(trace);
  sort_runs(trace.backward, [](const Backward& a, const Backward& b) {
    return a.forward != b.forward ? a.forward < b.forward : a.backward < b.backward;
  });
  return {};
}

}  // namespace stepscope::derive
