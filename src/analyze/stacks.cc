// stacks: what Python functions cost on the host, and the device work launched under them: by function and as a tree
// for flame graphs.
//
// From the frames that torch.profiler records with with_stack=True. Self time is without the functions called; time in
// operators counts for the function that called them.
#include <algorithm>
#include <array>
#include <map>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/path_tree.h"
#include "model/python_frames.h"

namespace stepscope::analyze {
namespace {

constexpr std::array kKinds{SliceKind::python_function};
constexpr std::size_t kMostNodes = 2000;  // of the tree: what a picture can show
constexpr double kLeastShare = 0.001;     // of its host or device time
constexpr std::string_view kNoStacks = "No Python frames were recorded. Record them with with_stack=True.";

struct RankStacks {
  const Trace* trace;
  PathTree tree;
};

struct Frame {
  std::string function;
  Value file, line;
};

Frame frame_of(std::string_view name) {
  PythonFrame frame = read_python_frame(name);
  if (frame.file.empty()) return {path_name(name), {}, {}};
  return {std::move(frame.function), std::move(frame.file), frame.line};
}

// Takes out the threads of our own (the clock, the watch for signals): they wait all the while, and would be first of
// all functions. Their frames stand at the top, or right below Python's of a thread; our code in the job's threads
// costs it time.
void forget_own_threads(const Trace& trace, PathTree& tree) {
  std::vector<bool> own(tree.nodes.size(), false);
  for (std::size_t i = 0; i < tree.nodes.size(); i++) {  // callers come first
    PathNode& node = tree.nodes[i];
    const bool below = node.parent != PathNode::none && own[node.parent];
    const auto is_in = [&](const PathNode& frame, std::string_view place) {
      return trace.name(frame.example).find(place) != std::string_view::npos;
    };
    own[i] = below || (is_in(node, "/_stepscope_hooks/") && !is_in(node, "/request_threads.py(") &&
                       (node.parent == PathNode::none || is_in(tree.nodes[node.parent], "threading.py(")));
    if (own[i] && !below) {
      for (std::uint32_t caller = node.parent; caller != PathNode::none; caller = tree.nodes[caller].parent) {
        tree.nodes[caller].total_ns -= node.total_ns;
      }
    }
  }
  for (std::size_t i = 0; i < own.size(); i++) {
    if (own[i]) tree.nodes[i].calls = 0, tree.nodes[i].self_ns = 0, tree.nodes[i].total_ns = 0;
  }
}

struct FunctionSum {
  std::uint64_t calls = 0;
  std::int64_t self_ns = 0, total_ns = 0, device_self_ns = 0, device_ns = 0;
};

Table functions_table(const std::vector<RankStacks>& ranks) {
  Table table{.name = "functions",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"function", ValueType::text, Unit::none, "Function, built-in method or module"},
                          {"file", ValueType::text, Unit::none, "File; unknown: it has none"},
                          {"line", ValueType::integer, Unit::none, "Line as recorded; unknown: it has none"},
                          {"calls", ValueType::integer, Unit::count, "How often it was called"},
                          {"self_ns", ValueType::integer, Unit::ns, "Host time without the functions that it called"},
                          {"total_ns", ValueType::integer, Unit::ns,
                           "Host time with them; a call inside another of the same function counts once"},
                          {"device_self_ns", ValueType::integer, Unit::ns,
                           "Time of device work launched by it and no function below; unknown without device work"},
                          {"device_ns", ValueType::integer, Unit::ns,
                           "Time of device work launched below it, summed over the paths to it"}}};
  for (const RankStacks& rank : ranks) {
    std::map<std::string, FunctionSum> sums;
    for (const PathNode& node : rank.tree.nodes) {
      if (node.calls == 0) continue;
      FunctionSum& sum = sums[path_name(rank.trace->name(node.example))];
      sum.calls += node.calls;
      sum.self_ns += node.self_ns;
      sum.device_self_ns += node.device_self_ns;
      if (node.recursive) continue;
      sum.total_ns += node.total_ns;
      sum.device_ns += node.device_ns;
    }
    const bool device = rank.trace->device.size() > 0;
    for (const auto& [name, sum] : sums) {
      Frame frame = frame_of(name);
      table.rows.push_back({rank.trace->rank.rank, std::move(frame.function), std::move(frame.file),
                            std::move(frame.line), count(sum.calls), sum.self_ns, sum.total_ns,
                            value_if(device, sum.device_self_ns), value_if(device, sum.device_ns)});
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[5]) > std::get<std::int64_t>(b[5]);
  });
  return table;
}

// The nodes worth showing: a node is never shorter than what it calls, so callers of a kept node are kept.
std::vector<bool> kept_nodes(const PathTree& tree, std::size_t& left_out) {
  std::int64_t host = 0, device = 0;
  for (const PathNode& node : tree.nodes) {
    if (node.parent != PathNode::none) continue;
    host += node.total_ns;
    device += node.device_ns;
  }
  const auto share_of = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  std::vector<std::pair<double, std::uint32_t>> weights;
  for (std::uint32_t i = 0; i < tree.nodes.size(); i++) {
    const double weight = std::max(share_of(tree.nodes[i].total_ns, host), share_of(tree.nodes[i].device_ns, device));
    if (weight >= kLeastShare && tree.nodes[i].calls > 0) weights.push_back({-weight, i});
  }
  std::sort(weights.begin(), weights.end());  // of equal weight the caller comes first
  weights.resize(std::min(weights.size(), kMostNodes));
  std::vector<bool> kept(tree.nodes.size(), false);
  for (const auto& [weight, node] : weights) kept[node] = true;
  for (std::uint32_t i = 0; i < kept.size(); i++) {
    const std::uint32_t parent = tree.nodes[i].parent;
    if (parent != PathNode::none && !kept[parent]) kept[i] = false;
  }
  left_out += static_cast<std::size_t>(std::count(kept.begin(), kept.end(), false));
  return kept;
}

Table tree_table(const std::vector<RankStacks>& ranks, std::size_t& left_out) {
  Table table{.name = "tree",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"node", ValueType::integer, Unit::none, "Number of the node in its rank"},
                          {"parent", ValueType::integer, Unit::none, "Node of the caller; unknown: a root"},
                          {"depth", ValueType::integer, Unit::none, "Functions around it"},
                          {"name", ValueType::text, Unit::none, "Frame as recorded, without addresses"},
                          {"calls", ValueType::integer, Unit::count, "How often it was called on this path"},
                          {"self_ns", ValueType::integer, Unit::ns, "Host time without the functions that it called"},
                          {"total_ns", ValueType::integer, Unit::ns, "Host time with them"},
                          {"device_ns", ValueType::integer, Unit::ns,
                           "Time of device work launched below it; unknown without device work"}}};
  for (const RankStacks& rank : ranks) {
    const std::vector<bool> kept = kept_nodes(rank.tree, left_out);
    const bool device = rank.trace->device.size() > 0;
    for (std::uint32_t i = 0; i < kept.size(); i++) {
      if (!kept[i]) continue;
      const PathNode& node = rank.tree.nodes[i];
      table.rows.push_back({rank.trace->rank.rank, std::int64_t{i},
                            value_if(node.parent != PathNode::none, std::int64_t{node.parent}),
                            std::int64_t{node.depth}, path_name(rank.trace->name(node.example)), count(node.calls),
                            node.self_ns, node.total_ns, value_if(device, node.device_ns)});
    }
  }
  return table;
}

Result<Answer> run_stacks(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<RankStacks> ranks;
  std::uint64_t calls = 0;
  bool texts = false;
  bool one_step = false;
  for (const Trace& own : run.traces) {
    const Trace* with_frames = trace_with_frames(run, own);
    const Trace& trace = with_frames == nullptr ? own : *with_frames;
    one_step = one_step || &trace != &own;
    ranks.push_back({&trace, path_tree(trace, kKinds)});
    forget_own_threads(trace, ranks.back().tree);
    for (const PathNode& node : ranks.back().tree.nodes) calls += node.calls;
    for (std::size_t row = 0; row < trace.ops.size() && !texts; row++)
      texts = trace.ops.call_stack[row] != StringId::none;
  }
  std::size_t left_out = 0;
  answer.tables = {functions_table(ranks), tree_table(ranks, left_out)};
  add_scalar(answer, "call_count", value_if(calls > 0, static_cast<std::int64_t>(calls)), Unit::count,
             calls > 0 ? "Calls of Python functions, of all ranks" : kNoStacks);
  if (left_out > 0) {
    answer.notes.push_back("Table tree leaves out " + std::to_string(left_out) +
                           " nodes below 0.1 % of host and device time, or beyond the 2000 heaviest; table functions "
                           "counts all.");
  }
  limit_rows(answer, answer.tables[0], options.max_rows, "those with less self time");
  limit_rows(answer, answer.tables[1], options.max_rows, "later nodes");
  std::uint64_t too_deep = 0;
  for (const RankStacks& rank : ranks) too_deep += rank.tree.too_deep;
  if (too_deep > 0) answer.notes.push_back(too_deep_note(too_deep));
  if (one_step) {
    answer.notes.push_back(
        "Functions are those of one step that was recorded with stacks after the window; recording "
        "them makes it slower than the others.");
  }
  if (calls == 0) answer.notes.push_back(std::string(kNoStacks));
  if (calls == 0 && texts)
    answer.notes.push_back("The operators carry call stacks as text: the table operators.by_stack is about these.");
  return answer;
}

}  // namespace

Analysis stacks_analysis() { return {"stacks", "Which Python functions take the time?", run_stacks}; }

}  // namespace stepscope::analyze
