#include "serve/slice_links.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "model/lookup.h"

namespace stepscope::serve {
namespace {

constexpr std::size_t kMostFrames = 1000;

class Collector {
 public:
  explicit Collector(std::size_t most) : most_(most) {}

  void add(LinkKind kind, std::size_t rank, SliceId slice) {
    if (slice == SliceId::none || !known_.emplace(rank, slice).second) return;
    links_.total++;
    if (links_.found.size() < most_) links_.found.push_back({kind, rank, slice});
  }
  Links take() { return std::move(links_); }

 private:
  std::size_t most_;
  std::set<std::pair<std::size_t, SliceId>> known_;
  Links links_;
};

void add_launches(const Trace& trace, std::size_t rank, SliceId slice, Collector& to) {
  const std::size_t row = row_of(trace.device.slice, slice);
  if (row < trace.device.size()) return to.add(LinkKind::launch, rank, trace.device.launch[row]);
  for (std::size_t other = 0; other < trace.device.size(); other++) {
    const bool launched = trace.device.launch[other] == slice || trace.device.op[other] == slice;
    if (launched) to.add(LinkKind::kernel, rank, trace.device.slice[other]);
  }
}

// The nearest of the slice and those around it that is in `role` of a pair of passes; none: there is no such.
SliceId nearest(const Trace& trace, SliceId slice, SliceId Backward::*role) {
  std::unordered_map<SliceId, std::size_t> around;  // by how far out
  for (SliceId at = slice; at != SliceId::none && around.size() < kDeepestWalk; at = trace.slices.parent[at]) {
    around.emplace(at, around.size());
  }
  std::size_t level = around.size();
  SliceId found = SliceId::none;
  for (const Backward& pair : trace.backward) {
    const auto at = around.find(pair.*role);
    if (at != around.end() && at->second < level) level = at->second, found = pair.*role;
  }
  return found;
}

// Of an operator that has no other pass itself, those of the nearest around it: autograd's name for a node is within
// the slice that is linked.
void add_passes(const Trace& trace, std::size_t rank, SliceId slice, Collector& to) {
  if (trace.kind(slice) != SliceKind::cpu_op) return;
  const auto add = [&](LinkKind kind, SliceId Backward::*role, SliceId Backward::*other) {
    const SliceId own = nearest(trace, slice, role);
    for (const Backward& pair : trace.backward) {
      if (own != SliceId::none && pair.*role == own) to.add(kind, rank, pair.*other);
    }
  };
  add(LinkKind::forward, &Backward::backward, &Backward::forward);
  add(LinkKind::backward, &Backward::forward, &Backward::backward);
}

bool is_host_library(std::string_view name) {
  return name.starts_with("gloo:") || name.starts_with("mpi:") || name.starts_with("ucc:");
}

// The slice of a member: what it did on the device, or the call on the host. Calls of gloo, MPI and UCC are known by
// their time alone.
SliceId slice_of(const Trace& trace, const MatchMember& member, bool on_device) {
  const SliceId work = member.device_row == MatchMember::kNone ? SliceId::none : trace.device.slice[member.device_row];
  const SliceId call =
      member.collective == MatchMember::kNone ? SliceId::none : trace.collectives.slice[member.collective];
  if (work != SliceId::none && (on_device || call == SliceId::none)) return work;
  if (call != SliceId::none) return call;
  for (std::uint32_t i = 0; i < trace.slices.size(); i++) {
    const auto slice = static_cast<SliceId>(i);
    if (trace.slices.start_ns[i] != member.start_ns || trace.slices.end_ns(slice) != member.end_ns) continue;
    if (is_host_library(trace.name(slice))) return slice;
  }
  return SliceId::none;
}

void add_collective(const Run& run, std::size_t rank, SliceId slice, Collector& to) {
  const Trace& trace = run.traces[rank];
  const std::size_t work = row_of(trace.device.slice, slice), call = row_of(trace.collectives.slice, slice);
  const bool on_device = work < trace.device.size();
  const bool by_time = !on_device && call == trace.collectives.size() && is_host_library(trace.name(slice));
  if (!on_device && call == trace.collectives.size() && !by_time) return;
  const Matches& matches = run.matches;
  const auto is_this = [&](const MatchMember& member) {
    if (member.trace != rank) return false;
    if (on_device && member.device_row == work) return true;
    if (call < trace.collectives.size() && member.collective == call) return true;
    return by_time && member.device_row == MatchMember::kNone && member.collective == MatchMember::kNone &&
           member.start_ns == trace.slices.start_ns[slice] && member.end_ns == trace.slices.end_ns(slice);
  };
  for (std::size_t match = 0; match < matches.size(); match++) {
    const std::span<const MatchMember> members = matches.of(match);
    if (!std::any_of(members.begin(), members.end(), is_this)) continue;
    for (const MatchMember& member : members) {
      if (member.trace != rank) {
        to.add(LinkKind::collective, member.trace, slice_of(run.traces[member.trace], member, on_device));
      }
    }
    return;
  }
}

struct ArrowEnd {
  std::int64_t time_ns = 0;
  std::size_t row = 0;  // of Trace::flows
};

// Arrows end where their 'f' or 't' is, and come from the last 's' or 't' before it, else from the first 's': the rule
// by which kernels are linked with launches too (derive/flow_links.h).
void add_arrows(const Trace& trace, std::size_t rank, SliceId slice, Collector& to) {
  const Flows& flows = trace.flows;
  const TrackId track = trace.slices.track[slice];
  const std::int64_t from = trace.slices.start_ns[slice], until = trace.slices.end_ns(slice);
  using Key = std::pair<CategoryId, std::int64_t>;
  std::map<Key, std::vector<ArrowEnd>> arrows;  // those with an end in the slice
  const auto at = [&](std::size_t row) { return slice_at(trace, flows.track[row], flows.time_ns[row]); };
  for (std::size_t row = 0; row < flows.size(); row++) {
    if (flows.track[row] != track || flows.time_ns[row] < from || flows.time_ns[row] > until) continue;
    if (at(row) == slice) arrows[{flows.category[row], flows.id[row]}];
  }
  if (arrows.empty()) return;
  for (std::size_t row = 0; row < flows.size(); row++) {
    const auto arrow = arrows.find({flows.category[row], flows.id[row]});
    if (arrow != arrows.end()) arrow->second.push_back({flows.time_ns[row], row});
  }
  std::vector<std::pair<SliceId, SliceId>> found;  // from, to
  for (auto& [key, ends] : arrows) {
    // At one instant what begins comes first.
    std::stable_sort(ends.begin(), ends.end(), [&](const ArrowEnd& a, const ArrowEnd& b) {
      return std::pair(a.time_ns, flows.phase[a.row] == 'f') < std::pair(b.time_ns, flows.phase[b.row] == 'f');
    });
    const auto first =
        std::find_if(ends.begin(), ends.end(), [&](const ArrowEnd& end) { return flows.phase[end.row] == 's'; });
    std::size_t source = first == ends.end() ? flows.size() : first->row;
    for (const ArrowEnd& end : ends) {
      const char phase = flows.phase[end.row];
      if (phase != 's' && source < flows.size()) found.emplace_back(at(source), at(end.row));
      if (phase != 'f') source = end.row;
    }
  }
  for (const auto& [begin, end] : found) {
    if (end == slice && begin != slice) to.add(LinkKind::arrow_from, rank, begin);
  }
  for (const auto& [begin, end] : found) {
    if (begin == slice && end != slice) to.add(LinkKind::arrow_to, rank, end);
  }
}

// The frames that a text of the recording lists, "file(line): function;…", outermost last.
std::vector<std::string_view> listed_frames(std::string_view text) {
  std::vector<std::string_view> frames;
  while (!text.empty() && frames.size() < kMostFrames) {
    const std::size_t end = std::min(text.find(';'), text.size());
    if (end > 0) frames.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return frames;
}

std::vector<std::string_view> frames_around(const Trace& trace, SliceId slice) {
  std::vector<std::string_view> frames;
  std::vector<std::string_view> listed;  // of the innermost operator that has some
  int level = 0;
  for (SliceId at = slice; at != SliceId::none && level < kDeepestWalk; at = trace.slices.parent[at], level++) {
    if (trace.kind(at) == SliceKind::python_function) {
      if (frames.size() < kMostFrames) frames.push_back(trace.name(at));
      continue;
    }
    if (!listed.empty()) continue;
    const std::size_t op = row_of(trace.ops.slice, at);
    if (op >= trace.ops.size() || trace.ops.call_stack[op] == StringId::none) continue;
    listed = listed_frames(trace.strings[trace.ops.call_stack[op]]);
  }
  return frames.empty() ? listed : frames;
}

SliceId forward_around(const Trace& trace, SliceId slice) {
  const SliceId backward = nearest(trace, slice, &Backward::backward);
  const auto pair = std::find_if(trace.backward.begin(), trace.backward.end(),
                                 [&](const Backward& one) { return one.backward == backward; });
  return backward == SliceId::none ? SliceId::none : pair->forward;
}

}  // namespace

std::string_view to_string(LinkKind kind) {
  static constexpr std::array<std::string_view, 7> names{"launch",     "kernel",     "forward", "backward",
                                                         "collective", "arrow_from", "arrow_to"};
  return names[static_cast<std::size_t>(kind)];
}

Links links_of(const Run& run, std::size_t rank, SliceId slice, std::size_t most) {
  const Trace& trace = run.traces[rank];
  Collector links(most);
  add_launches(trace, rank, slice, links);
  add_passes(trace, rank, slice, links);
  add_collective(run, rank, slice, links);
  add_arrows(trace, rank, slice, links);
  return links.take();
}

CodeStack stack_of(const Trace& trace, SliceId slice) {
  const std::size_t row = row_of(trace.device.slice, slice);
  SliceId at = row < trace.device.size() ? trace.device.launch[row] : slice;
  if (at == SliceId::none) return {};
  std::vector<std::string_view> frames = frames_around(trace, at);
  if (frames.empty()) {
    at = forward_around(trace, at);
    if (at != SliceId::none) frames = frames_around(trace, at);
  }
  if (frames.empty()) return {};
  return {std::move(frames), at};
}

}  // namespace stepscope::serve
