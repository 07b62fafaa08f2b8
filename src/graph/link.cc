#include "graph/link.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/name_alignment.h"
#include "model/lookup.h"

namespace stepscope::graph {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, kLinkEvidences> kEvidenceTexts{{
    {"none", "nothing shows which slice the node is"},
    {"record function id", "both recorders wrote down the same record function id and the same name"},
    {"sequence number", "same name and autograd sequence number, in order, on the thread"},
    {"name order", "same name at the same place in the order of names on the thread"},
}};

// Threads of the two are compared only when at least this share of the smaller one's names is on the other.
constexpr double kNamesInCommon = 0.5;

// The number of a step is in the name of its mark, and the two recorders need not agree on it.
std::string_view plain_name(std::string_view name) {
  constexpr std::string_view step = "ProfilerStep#";
  return name.starts_with(step) ? step : name;
}

bool is_host_op(SliceKind kind) { return kind == SliceKind::cpu_op || kind == SliceKind::user_annotation; }

// One thread of either side, in the order of calls.
struct Thread {
  std::vector<std::uint32_t> rows;  // node, or slice
  std::vector<Called> calls;
  std::vector<std::uint32_t> names;  // sorted, to compare what two threads have in common
  bool taken = false;
};

class Linker {
 public:
  Linker(const Trace& graph, const Trace& timeline, Link& out) : graph_(graph), timeline_(timeline), out_(out) {
    out.slice.assign(graph.nodes.size(), SliceId::none);
    out.evidence.assign(graph.nodes.size(), LinkEvidence::none);
    node_of_slice_.assign(timeline.slices.size(), kNoNode);
  }

  void run() {
    if (!link_ids()) link_names();
    link_device();
    count();
  }

 private:
  bool link_ids();
  void link_names();
  void link_device();
  void count();
  void join(std::uint32_t node, SliceId slice, LinkEvidence evidence) {
    if (node_of_slice_[static_cast<std::size_t>(slice)] != kNoNode) return;  // an id that two nodes have
    node_of_slice_[static_cast<std::size_t>(slice)] = node;
    out_.slice[node] = slice;
    out_.evidence[node] = evidence;
  }
  std::string_view node_name(std::uint32_t node) const {
    const StringId name = graph_.nodes.name[node];
    return name == StringId::none ? std::string_view() : plain_name(graph_.strings[name]);
  }
  std::uint32_t number_of(std::string_view name) {
    return numbers_.emplace(plain_name(name), static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::vector<Thread> node_threads();
  std::vector<Thread> slice_threads();
  std::uint32_t node_around(SliceId slice) const;

  const Trace& graph_;
  const Trace& timeline_;
  Link& out_;
  std::vector<std::uint32_t> node_of_slice_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

// False where one of the two files has no such ids.
bool Linker::link_ids() {
  const Ops& ops = timeline_.ops;
  std::unordered_map<std::int64_t, SliceId> slice_of;
  for (std::size_t row = 0; row < ops.size(); row++) {
    if (ops.record_function_id[row] > 0 && is_host_op(timeline_.kind(ops.slice[row])))
      slice_of.emplace(ops.record_function_id[row], ops.slice[row]);
  }
  bool any = false;
  for (std::uint32_t node = 0; node < graph_.nodes.size(); node++) {
    const std::int64_t id = graph_.nodes.record_function_id[node];
    if (id <= 0) continue;
    any = true;
    const auto found = slice_of.find(id);
    if (found == slice_of.end()) continue;
    if (plain_name(timeline_.name(found->second)) == node_name(node)) {
      join(node, found->second, LinkEvidence::record_function_id);
    } else {
      out_.other_name++;
    }
  }
  return any && !slice_of.empty();
}

void sort_names(std::vector<Thread>& threads) {
  for (Thread& thread : threads) {
    for (const Called& call : thread.calls) thread.names.push_back(call.name);
    std::sort(thread.names.begin(), thread.names.end());
  }
}

// Ids are given when calls begin, so their order is the order of calls; the file's is the order of ends.
std::vector<Thread> Linker::node_threads() {
  const GraphNodes& nodes = graph_.nodes;
  std::map<std::int64_t, Thread> by_thread;
  for (std::uint32_t node = 0; node < nodes.size(); node++) {
    if (is_operator(nodes.kind[node])) by_thread[nodes.thread[node]].rows.push_back(node);
  }
  std::vector<Thread> threads;
  for (auto& [id, thread] : by_thread) {
    std::sort(thread.rows.begin(), thread.rows.end(),
              [&](std::uint32_t a, std::uint32_t b) { return nodes.id[a] < nodes.id[b]; });
    for (const std::uint32_t node : thread.rows) {
      const std::int64_t sequence = nodes.sequence[node];
      thread.calls.push_back({number_of(node_name(node)), sequence < 0 ? kAbsent : sequence});
    }
    threads.push_back(std::move(thread));
  }
  sort_names(threads);
  return threads;
}

std::vector<Thread> Linker::slice_threads() {
  std::vector<Thread> threads;
  for (std::size_t track = 0; track < timeline_.tracks.size(); track++) {
    Thread thread;
    for (std::uint32_t at = timeline_.track_begin[track]; at < timeline_.track_begin[track + 1]; at++) {
      const SliceId slice = timeline_.by_track[at];
      if (!is_host_op(timeline_.kind(slice))) continue;
      const std::size_t op = row_of(timeline_.ops.slice, slice);
      const std::int64_t sequence = op < timeline_.ops.size() ? timeline_.ops.sequence[op] : kAbsent;
      thread.rows.push_back(static_cast<std::uint32_t>(slice));
      thread.calls.push_back({number_of(timeline_.name(slice)), sequence < 0 ? kAbsent : sequence});
    }
    if (!thread.rows.empty()) threads.push_back(std::move(thread));
  }
  sort_names(threads);
  return threads;
}

bool have_names_in_common(const Thread& part, const Thread& whole) {
  std::size_t common = 0;
  for (auto a = part.names.begin(), b = whole.names.begin(); a != part.names.end() && b != whole.names.end();) {
    if (*a == *b) common++;
    const bool next_a = *a <= *b, next_b = *b <= *a;
    a += next_a ? 1 : 0;
    b += next_b ? 1 : 0;
  }
  return static_cast<double>(common) >= kNamesInCommon * static_cast<double>(part.names.size());
}

// The largest thread chooses first: which lane of the timeline it is, is decided by how many of its calls are found.
void Linker::link_names() {
  std::vector<Thread> parts = node_threads(), wholes = slice_threads();
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Thread& a, const Thread& b) { return a.rows.size() > b.rows.size(); });
  for (const Thread& part : parts) {
    std::vector<CalledPair> best;
    Thread* chosen = nullptr;
    for (Thread& whole : wholes) {
      if (whole.taken || !have_names_in_common(part, whole)) continue;
      std::vector<CalledPair> pairs = align_names(part.calls, whole.calls);
      if (pairs.size() <= best.size()) continue;
      best = std::move(pairs);
      chosen = &whole;
    }
    if (chosen == nullptr) continue;
    chosen->taken = true;
    for (const CalledPair& pair : best) {
      join(part.rows[pair.part], static_cast<SliceId>(chosen->rows[pair.whole]),
           pair.by_sequence ? LinkEvidence::sequence_number : LinkEvidence::name_order);
    }
  }
}

std::uint32_t Linker::node_around(SliceId slice) const {
  for (int level = 0; slice != SliceId::none && level < kDeepestWalk; level++) {
    if (const std::uint32_t node = node_of_slice_[static_cast<std::size_t>(slice)]; node != kNoNode) return node;
    slice = timeline_.slices.parent[slice];
  }
  return kNoNode;
}

void Linker::link_device() {
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const SliceId slice : out_.slice) {
    if (slice == SliceId::none) continue;
    first = std::min(first, timeline_.slices.start_ns[slice]);
    last = std::max(last, timeline_.slices.end_ns(slice));
  }
  const DeviceRows& device = timeline_.device;
  out_.node_of.assign(device.size(), kNoNode);
  for (std::uint32_t row = 0; row < device.size(); row++) {
    if (!is_device_work(timeline_.kind(device.slice[row]))) continue;
    out_.node_of[row] = node_around(device.launch[row]);
    const SliceId launched = device.launch[row] == SliceId::none ? device.slice[row] : device.launch[row];
    const std::int64_t time = timeline_.slices.start_ns[launched];
    const bool outside = first > last || time < first || time >= last;
    auto& counted = out_.node_of[row] != kNoNode ? out_.device_linked
                    : outside                    ? out_.device_outside
                                                 : out_.device_unlinked;
    counted++;
  }
}

void Linker::count() {
  for (std::uint32_t node = 0; node < graph_.nodes.size(); node++) {
    if (!is_operator(graph_.nodes.kind[node])) continue;
    out_.operators++;
    out_.nodes[static_cast<std::size_t>(out_.evidence[node])]++;
  }
}

// Why so little was found, as far as the two files show it.
std::string reason_of(const Link& link, const Trace& graph, const Trace& timeline) {
  if (timeline.ops.size() == 0) return "the timeline has no operators";
  if (link.other_name > link.linked())
    return "their record function ids name different operators (" + std::to_string(link.other_name) +
           " of them), so they are of different runs";
  const auto numbered = [](const NarrowColumn& ids) {
    for (std::size_t row = 0; row < ids.size(); row++) {
      if (ids[row] > 0) return true;
    }
    return false;
  };
  if (numbered(graph.nodes.record_function_id) && numbered(timeline.ops.record_function_id))
    return "the record function ids of most nodes are not in the timeline, so it is of other steps or another process";
  return "the files have no record function ids in common, and names and autograd sequence numbers of their threads "
         "differ";
}

}  // namespace

std::string_view to_string(LinkEvidence evidence) { return kEvidenceTexts[static_cast<std::size_t>(evidence)].first; }
std::string_view meaning_of(LinkEvidence evidence) { return kEvidenceTexts[static_cast<std::size_t>(evidence)].second; }

double Link::coverage() const {
  return operators == 0 ? 0 : static_cast<double>(linked()) / static_cast<double>(operators);
}

bool is_operator(NodeKind kind) {
  return kind == NodeKind::host || kind == NodeKind::send || kind == NodeKind::receive || kind == NodeKind::collective;
}

Link find_link(const Trace& graph, const Trace& timeline) {
  Link link;
  Linker(graph, timeline, link).run();
  return link;
}

Result<void> covers_enough(const Link& link, const Trace& graph, const Trace& timeline) {
  if (link.coverage() >= kLeastCoverage) return {};
  return fail({ErrorKind::unsupported,
               "only " + std::to_string(link.linked()) + " of " + std::to_string(link.operators) +
                   " operators of this execution trace are in " + timeline.source.path + ": " +
                   reason_of(link, graph, timeline),
               graph.source.path, std::nullopt,
               "Record both in the same steps of one run: stepscope run --with execution-trace -- CMD"});
}

}  // namespace stepscope::graph
