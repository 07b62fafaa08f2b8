#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "compat/hta/call_stack.h"
#include "compat/hta/critical_path_analysis/builder.h"

namespace stepscope::compat::hta {
namespace {

constexpr std::array<std::string_view, 3> kLocking{"cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync"};
constexpr std::array<std::string_view, 6> kBlocking{
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventQuery", "cudaEventSynchronize", "cudaMemcpy",
    "cudaMemcpyAsync"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_call(const EventTable& table, const Row& row) {
  const std::string_view category = table.category(row);
  return category == "cpu_op" || category == "cuda_runtime" || category == "cuda_driver";
}

const Track& track_of(const EventTable& table, const Row& row) {
  const Trace& trace = table.trace();
  return trace.tracks[static_cast<std::size_t>(trace.slices.track[row.index])];
}

// The one thread on which operators or annotations with `part` in their name ran; none when there are several.
StringId thread_of(const EventTable& table, const std::vector<Row>& rows, std::string_view part) {
  std::set<StringId> threads;
  for (const Row& row : rows) {
    const std::string_view category = table.category(row);
    if (category != "cpu_op" && category != "user_annotation") continue;
    if (table.name(row).find(part) != std::string_view::npos) threads.insert(track_of(table, row).thread);
  }
  return threads.size() == 1 ? *threads.begin() : StringId::none;
}

}  // namespace

PathBuilder::PathBuilder(const EventTable& table, std::vector<Row> window) : table_(table), window_(std::move(window)) {
  for (std::uint32_t i = 0; i < window_.size(); i++) row_of_.emplace(window_[i].index, i);
}

const Row* PathBuilder::row(std::int64_t index) const {
  const auto found = index < 0 ? row_of_.end() : row_of_.find(static_cast<std::uint32_t>(index));
  return found == row_of_.end() ? nullptr : &window_[found->second];
}

std::optional<NodePair> PathBuilder::nodes_of(std::int64_t index) const {
  const auto found = index < 0 ? nodes_.end() : nodes_.find(static_cast<std::uint32_t>(index));
  return found == nodes_.end() ? std::nullopt : std::optional(found->second);
}

void PathBuilder::build() {
  create_nodes();
  connect_lock_holders();
  connect_call_stacks();
  connect_device();
}

void PathBuilder::create_nodes() {
  for (const bool is_start : {true, false}) {
    for (const Row& row : window_) {
      if (is_call(table_, row) || (row.stream != kNone && row.index_correlation >= 0))
        graph.nodes.push_back({row.index, is_start ? row.ts : row.end(), is_start});
    }
  }
  std::stable_sort(graph.nodes.begin(), graph.nodes.end(),
                   [](const PathNode& a, const PathNode& b) { return a.ts != b.ts ? a.ts < b.ts : a.index < b.index; });
  for (std::uint32_t i = 0; i < graph.nodes.size(); i++) {
    NodePair& pair = nodes_[graph.nodes[i].index];
    (graph.nodes[i].is_start ? pair.start : pair.end) = i;
  }
}

bool PathBuilder::holds_lock(std::uint32_t node) const {
  const Row* const found = row(graph.nodes[node].index);
  return found != nullptr && is_one_of(kLocking, table_.name(*found));
}

// Neighbors are linked by connect_lock_holders() already, unless the first had ended when the second began.
bool PathBuilder::share_lock(std::uint32_t first, std::uint32_t second) const {
  return holds_lock(first) && holds_lock(second) && (graph.nodes[first].is_start || !graph.nodes[second].is_start);
}

// Nested and chained time belongs to the event that it passed in: that of the start, else of the end, else, between
// two children, their parent.
void PathBuilder::attribute(PathEdge& edge, std::optional<std::int64_t> source_parent) {
  const PathNode &from = graph.nodes[edge.from], &to = graph.nodes[edge.to];
  if (edge.type == EdgeType::kernel_delay || (edge.type == EdgeType::operation && from.is_start)) {
    edge.event = from.index;
  } else if (edge.type == EdgeType::operation) {
    edge.event = to.is_start ? source_parent : std::optional<std::int64_t>(to.index);
  }
}

// One call at a time holds the runtime's lock; which one had it is told by which ended first.
void PathBuilder::connect_lock_holders() {
  std::vector<std::uint32_t> started;
  std::optional<std::uint32_t> last;
  for (std::uint32_t node = 0; node < graph.nodes.size(); node++) {
    if (!holds_lock(node)) continue;
    if (graph.nodes[node].is_start) {
      started.push_back(node);
    } else {
      for (; !started.empty(); started.pop_back()) {
        const bool same = graph.nodes[started.back()].index == graph.nodes[node].index;
        PathEdge& edge = graph.connect(started.back(), node, same ? EdgeType::operation : EdgeType::dependency);
        if (same) attribute(edge, graph.nodes[node].index);
      }
      if (last && !graph.nodes[*last].is_start) graph.connect(*last, node, EdgeType::dependency);
    }
    last = node;
  }
}

// Backward work runs on a thread of its own while the forward thread waits: where each has exactly one thread, both
// are taken for one.
void PathBuilder::connect_call_stacks() {
  const StringId forward = thread_of(table_, window_, "forward"), backward = thread_of(table_, window_, "autograd");
  const bool merge = forward != StringId::none && backward != StringId::none && forward != backward;
  const StringPool& strings = table_.trace().strings;
  std::map<std::pair<NumberFirst, NumberFirst>, std::vector<Row>> threads;
  for (const Row& row : window_) {
    const Track& track = track_of(table_, row);
    const StringId thread = merge && track.thread == backward ? forward : track.thread;
    threads[{NumberFirst(strings[track.process]), NumberFirst(strings[thread])}].push_back(row);
  }
  for (const auto& [ids, rows] : threads) {
    if (std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.stream < 0; })) connect_thread(rows);
  }
}

struct PathBuilder::Walk {
  std::optional<std::uint32_t> last;
  std::optional<std::int64_t> last_parent;
  int depth = 0;
};

void PathBuilder::enter(const Row& row, std::int64_t parent, Walk& walk) {
  const auto nodes = nodes_of(row.index);
  if (!nodes) return;
  if (walk.last && !share_lock(*walk.last, nodes->start)) {
    const EdgeType type = walk.depth == 0 ? EdgeType::dependency : EdgeType::operation;
    attribute(graph.connect(*walk.last, nodes->start, type), walk.last_parent);
  }
  walk.last = nodes->start;
  walk.last_parent = parent;
  walk.depth++;
}

void PathBuilder::leave(const Row& row, std::int64_t parent, Walk& walk) {
  const auto nodes = nodes_of(row.index);
  if (!nodes) return;
  if (walk.last && !share_lock(*walk.last, nodes->end)) {
    const bool blocking = is_one_of(kBlocking, table_.name(row));
    attribute(graph.connect(*walk.last, nodes->end, EdgeType::operation, blocking), walk.last_parent);
  }
  walk.last = nodes->end;
  walk.last_parent = parent;
  walk.depth--;
}

void PathBuilder::connect_thread(const std::vector<Row>& rows) {
  Walk walk;
  CallStack(rows).visit([&](std::uint32_t at, std::int64_t parent) { enter(rows[at], parent, walk); },
                        [&](std::uint32_t at, std::int64_t parent) { leave(rows[at], parent, walk); });
}

}  // namespace stepscope::compat::hta
