#include "model/path_tree.h"

#include <algorithm>
#include <unordered_map>

#include "base/key_index.h"
#include "model/lookup.h"
#include "model/windows.h"

namespace stepscope {
namespace {

constexpr std::uint32_t kNone = PathNode::none;
// Deeper calls count as part of the one around them: paths as texts grow with the square of the depth.
constexpr std::uint32_t kDeepest = 256;
constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

// One number for all names with the same path_name.
class NameKeys {
 public:
  explicit NameKeys(const Trace& trace) : trace_(trace), keys_(trace.strings.size() + 1, kNone) {}
  std::uint32_t operator()(StringId name) {
    const std::size_t at = name == StringId::none ? keys_.size() - 1 : static_cast<std::size_t>(name);
    if (keys_[at] == kNone) {
      const auto [found, added] =
          known_.try_emplace(path_name(trace_.strings[name]), static_cast<std::uint32_t>(known_.size()));
      keys_[at] = found->second;
    }
    return keys_[at];
  }

 private:
  const Trace& trace_;
  std::vector<std::uint32_t> keys_;
  std::unordered_map<std::string, std::uint32_t> known_;
};

struct Builder {
  struct Call {
    std::uint32_t node;
    std::int64_t covered;  // its children are accounted up to here
    std::int64_t end;
  };
  const Trace& trace;
  PathTree tree;
  std::vector<std::uint32_t> name_key;  // per node
  std::vector<std::uint32_t> call_at;   // per slice: the innermost call at or above it
  std::vector<Call> calls;
};

void add_call(Builder& build, KeyIndex& nodes, SliceId id, std::uint32_t above, std::uint32_t name) {
  const Trace& trace = build.trace;
  const std::uint32_t parent = above == kNone ? kNone : build.calls[above].node;
  const std::uint32_t at = nodes[static_cast<std::uint64_t>(parent) << 32 | name];
  if (at == build.tree.nodes.size()) {
    PathNode node{.parent = parent, .example = id};
    node.depth = parent == kNone ? 0 : build.tree.nodes[parent].depth + 1;
    for (std::uint32_t up = parent; up != kNone && !node.recursive; up = build.tree.nodes[up].parent)
      node.recursive = build.name_key[up] == name;
    build.tree.nodes.push_back(node);
    build.name_key.push_back(name);
  }
  const std::int64_t start = trace.slices.start_ns[id], end = trace.slices.end_ns(id);
  PathNode& node = build.tree.nodes[at];
  node.calls++;
  node.total_ns += end - start;
  node.self_ns += end - start;
  if (const StepId step = trace.step_at(start);
      step != StepId::none && !trace.steps[static_cast<std::size_t>(step)].partial) {
    node.step_calls++;
    node.step_ns += end - start;
  }
  if (above != kNone) {
    Builder::Call& caller = build.calls[above];
    const std::int64_t inside = std::min(end, caller.end);
    build.tree.nodes[parent].self_ns -= std::max<std::int64_t>(0, inside - std::max(start, caller.covered));
    caller.covered = std::max(caller.covered, inside);
  }
  build.call_at[static_cast<std::size_t>(id)] = static_cast<std::uint32_t>(build.calls.size());
  build.calls.push_back({at, start, end});
}

void walk(Builder& build, std::span<const SliceKind> kinds) {
  const Trace& trace = build.trace;
  NameKeys names(trace);
  KeyIndex nodes;
  std::vector<bool> wanted(trace.categories.size() + 1, false);
  for (std::size_t c = 0; c < trace.categories.size(); c++)
    wanted[c] = std::find(kinds.begin(), kinds.end(), trace.categories[c].kind) != kinds.end();
  build.call_at.assign(trace.slices.size(), kNone);
  for (const SliceId id : trace.by_track) {
    const SliceId parent = trace.slices.parent[id];
    const std::uint32_t above = parent == SliceId::none ? kNone : build.call_at[static_cast<std::size_t>(parent)];
    build.call_at[static_cast<std::size_t>(id)] = above;
    if (!wanted[std::min(static_cast<std::size_t>(trace.slices.category[id]), trace.categories.size())]) continue;
    if (above != kNone && build.tree.nodes[build.calls[above].node].depth + 1 >= kDeepest) {
      build.tree.too_deep++;
    } else {
      add_call(build, nodes, id, above, names(trace.slices.name[id]));
    }
  }
}

// The node under which a piece of work was launched.
std::uint32_t node_of(const Builder& build, std::uint32_t row) {
  const Trace& trace = build.trace;
  const SliceId launch = trace.device.launch[row];
  if (launch == SliceId::none) return kNone;
  std::uint32_t call = build.call_at[static_cast<std::size_t>(launch)];
  if (call == kNone && trace.device.phase[row] == static_cast<std::uint8_t>(Phase::backward)) {
    const std::int64_t time = trace.slices.start_ns[launch];
    const StepId step = trace.step_at(time);
    const TrackId track = step == StepId::none ? TrackId::none : trace.steps[static_cast<std::size_t>(step)].track;
    const SliceId open = track == TrackId::none ? SliceId::none : slice_at(trace, track, time);
    if (open != SliceId::none) call = build.call_at[static_cast<std::size_t>(open)];
  }
  return call == kNone ? kNone : build.calls[call].node;
}

void add_device_time(Builder& build) {
  auto& nodes = build.tree.nodes;
  std::vector<std::int64_t> until(nodes.size(), kBeforeAll), self_until(nodes.size(), kBeforeAll);
  const auto grow = [](std::int64_t start, std::int64_t end, std::int64_t& reached, std::int64_t& sum) {
    if (end <= reached) return;
    sum += end - std::max(start, reached);
    reached = end;
  };
  for (const std::uint32_t row : work_by_start(build.trace)) {
    const SliceId work = build.trace.device.slice[row];
    const std::int64_t start = build.trace.slices.start_ns[work], end = build.trace.slices.end_ns(work);
    const std::uint32_t inner = node_of(build, row);
    if (inner == kNone) {
      build.tree.work_outside++;
      continue;
    }
    grow(start, end, self_until[inner], nodes[inner].device_self_ns);
    for (std::uint32_t node = inner; node != kNone; node = nodes[node].parent)
      grow(start, end, until[node], nodes[node].device_ns);
  }
}

}  // namespace

std::string path_name(std::string_view name) {
  if (name.starts_with("ProfilerStep#")) return "ProfilerStep#*";
  const std::size_t address = name.find(" at 0x");
  if (address == std::string_view::npos) return std::string(name);
  std::size_t end = address + 6;
  while (end < name.size() && ((name[end] >= '0' && name[end] <= '9') || (name[end] >= 'a' && name[end] <= 'f') ||
                               (name[end] >= 'A' && name[end] <= 'F')))
    end++;
  std::string out(name.substr(0, address));
  return out.append(name.substr(end));
}

std::string PathTree::path(const Trace& trace, std::uint32_t node, std::string_view separator) const {
  std::vector<std::uint32_t> way;
  for (; node != kNone; node = nodes[node].parent) way.push_back(node);
  std::string out;
  for (auto at = way.rbegin(); at != way.rend(); ++at) {
    if (!out.empty()) out += separator;
    out += path_name(trace.name(nodes[*at].example));
  }
  return out;
}

std::string too_deep_note(std::uint64_t calls) {
  return std::to_string(calls) + " calls lie deeper than " + std::to_string(kDeepest) +
         " levels: they count as part of the one around them.";
}

PathTree path_tree(const Trace& trace, std::span<const SliceKind> kinds) {
  const auto there = [&](const Category& c) { return std::find(kinds.begin(), kinds.end(), c.kind) != kinds.end(); };
  if (std::none_of(trace.categories.begin(), trace.categories.end(), there)) return {};
  Builder build{.trace = trace};
  walk(build, kinds);
  add_device_time(build);
  return std::move(build.tree);
}

}  // namespace stepscope
