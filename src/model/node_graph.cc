#include "model/node_graph.h"

#include <string>

namespace stepscope {
namespace {

constexpr std::uint32_t kNoRow = 0xffffffff;

StringId pooled(Trace& trace, std::string_view text) {
  return text.empty() ? StringId::none : trace.strings.intern(text);
}

std::uint32_t row_of(const std::unordered_map<std::int64_t, std::uint32_t>& rows, std::int64_t id) {
  const auto found = rows.find(id);
  return found == rows.end() ? kNoRow : found->second;
}

}  // namespace

void NodeGraph::note(Fault& fault, std::uint64_t place, std::int64_t node, std::int64_t other) {
  if (fault.count++ == 0) fault = {1, place, node, other};
}

void NodeGraph::add(const GraphNode& node) {
  GraphNodes& all = trace_.nodes;
  if (node.id == kAbsent) return note(without_id_, node.place, 0, 0);
  if (!row_of_.emplace(node.id, static_cast<std::uint32_t>(all.size())).second) {
    return note(same_id_, node.place, node.id, node.id);
  }
  if (all.dependency_begin.empty()) all.dependency_begin.push_back(0);
  all.id.push_back(node.id);
  all.name.push_back(pooled(trace_, node.name));
  all.kind.push_back(node.kind);
  all.parent.push_back(node.parent == node.id ? kAbsent : node.parent);  // the root of a trace calls itself
  all.start_ns.push_back(node.start_ns);
  all.dur_ns.push_back(node.dur_ns);
  all.record_function_id.push_back(node.record_function_id);
  all.sequence.push_back(node.sequence);
  all.thread.push_back(node.thread);
  all.fwd_thread.push_back(node.fwd_thread);
  all.stream.push_back(node.stream);
  all.input_dims.push_back(pooled(trace_, node.input_dims));
  all.input_types.push_back(pooled(trace_, node.input_types));
  all.collective.push_back(pooled(trace_, node.collective));
  all.group_name.push_back(pooled(trace_, node.group_name));
  all.comm_bytes.push_back(node.comm_bytes);
  all.place.push_back(node.place);
  for (const std::int64_t other : node.depends_on) all.depends_on.push_back(other);
  all.dependency_begin.push_back(static_cast<std::uint32_t>(all.depends_on.size()));
}

void NodeGraph::finish() {
  check_references();
  find_cycles(true);
  find_cycles(false);
  nested_collectives();
  report(without_id_, "node_without_id", Severity::lost, "nodes without an id were left out", false);
  report(same_id_, "node_id_twice", Severity::lost, "nodes whose id another node has were left out", false);
  report(no_parent_, "node_parent_missing", Severity::info, "nodes name a caller that is not in the file", true);
  report(no_dependency_, "node_dependency_missing", Severity::info, "dependencies name a node that is not in the file",
         true);
  report(caller_cycle_, "node_caller_cycle", Severity::info, "nodes are among their own callers", true);
  report(cycle_, "node_cycle", Severity::info, "nodes wait for themselves through others: no order can run them", true);
}

void NodeGraph::check_references() {
  const GraphNodes& all = trace_.nodes;
  for (std::uint32_t row = 0; row < all.size(); row++) {
    if (all.parent.has(row) && !row_of_.contains(all.parent[row])) {
      note(no_parent_, all.place[row], all.id[row], all.parent[row]);
    }
    for (std::uint32_t at = all.dependency_begin[row]; at < all.dependency_begin[row + 1]; at++) {
      if (!row_of_.contains(all.depends_on[at])) note(no_dependency_, all.place[row], all.id[row], all.depends_on[at]);
    }
  }
}

// An edge list by its source: followers of row r are to[begin[r] .. begin[r + 1]).
struct NodeGraph::Edges {
  std::vector<std::uint32_t> begin, to;

  Edges(std::uint32_t rows, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs) : begin(rows + 1, 0) {
    for (const auto& [from, towards] : pairs) begin[from + 1]++;
    for (std::uint32_t row = 0; row < rows; row++) begin[row + 1] += begin[row];
    to.resize(pairs.size());
    std::vector<std::uint32_t> fill(begin.begin(), begin.end() - 1);
    for (const auto& [from, towards] : pairs) to[fill[from]++] = towards;
  }
};

// Takes away what has nothing before it until nothing more can be taken; says what is left.
void NodeGraph::peel(const Edges& followers, const Edges& before, std::vector<bool>& left) {
  const auto rows = static_cast<std::uint32_t>(left.size());
  std::vector<std::uint32_t> waits(rows, 0), ready;
  for (std::uint32_t row = 0; row < rows; row++) {
    if (!left[row]) continue;
    for (std::uint32_t at = before.begin[row]; at < before.begin[row + 1]; at++)
      waits[row] += left[before.to[at]] ? 1 : 0;
    if (waits[row] == 0) ready.push_back(row);
  }
  while (!ready.empty()) {
    const std::uint32_t row = ready.back();
    ready.pop_back();
    left[row] = false;
    for (std::uint32_t at = followers.begin[row]; at < followers.begin[row + 1]; at++) {
      const std::uint32_t next = followers.to[at];
      if (left[next] && --waits[next] == 0) ready.push_back(next);
    }
  }
}

// Peeled from both ends, what is left runs in circles or lies between two of them.
void NodeGraph::find_cycles(bool callers) {
  const GraphNodes& all = trace_.nodes;
  const auto rows = static_cast<std::uint32_t>(all.size());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges, reversed;
  for (std::uint32_t row = 0; row < rows; row++) {
    const auto add_edge = [&](std::int64_t id) {
      if (const std::uint32_t on = row_of(row_of_, id); on != kNoRow) edges.emplace_back(on, row);
    };
    if (callers) {
      if (all.parent.has(row)) add_edge(all.parent[row]);
      continue;
    }
    for (std::uint32_t at = all.dependency_begin[row]; at < all.dependency_begin[row + 1]; at++) {
      add_edge(all.depends_on[at]);
    }
  }
  for (const auto& [from, to] : edges) reversed.emplace_back(to, from);
  const Edges followers(rows, edges), before(rows, reversed);
  std::vector<bool> left(rows, true);
  peel(followers, before, left);
  peel(before, followers, left);
  for (std::uint32_t row = 0; row < rows; row++) {
    if (!left[row]) continue;
    std::uint32_t at = before.begin[row];
    while (!left[before.to[at]]) at++;
    note(callers ? caller_cycle_ : cycle_, all.place[row], all.id[row], all.id[before.to[at]]);
  }
}

// A collective is recorded by the call and by what it calls; the innermost record carries the sizes.
void NodeGraph::nested_collectives() {
  GraphNodes& all = trace_.nodes;
  for (std::uint32_t row = 0; row < all.size(); row++) {
    if (all.kind[row] != NodeKind::collective || !all.parent.has(row)) continue;
    const std::uint32_t caller = row_of(row_of_, all.parent[row]);
    if (caller != kNoRow && caller != row && all.kind[caller] == NodeKind::collective)
      all.kind[caller] = NodeKind::host;
  }
}

void NodeGraph::report(const Fault& fault, std::string_view code, Severity severity, std::string_view what,
                       bool names_other) {
  if (fault.count == 0) return;
  std::string sentence(what);
  if (names_other) {
    sentence += " (first: node " + std::to_string(fault.node) + ", node " + std::to_string(fault.other) + ")";
  } else if (fault.node != 0) {
    sentence += " (first: node " + std::to_string(fault.node) + ")";
  }
  add_issue(trace_.issues,
            {std::string(code), severity, std::move(sentence), "Record again; a graph like this cannot be replayed",
             fault.count, trace_.source.path, fault.place, std::nullopt});
}

std::unordered_map<std::int64_t, std::uint32_t> rows_by_id(const GraphNodes& nodes) {
  std::unordered_map<std::int64_t, std::uint32_t> rows;
  rows.reserve(nodes.size());
  for (std::uint32_t row = 0; row < nodes.size(); row++) rows.emplace(nodes.id[row], row);
  return rows;
}

std::vector<std::uint32_t> node_depths(const GraphNodes& nodes) {
  constexpr std::uint32_t unknown = 0xffffffff, open = 0xfffffffe;
  const auto rows = rows_by_id(nodes);
  std::vector<std::uint32_t> depth(nodes.size(), unknown), chain;
  for (std::uint32_t row = 0; row < nodes.size(); row++) {
    chain.clear();
    std::uint32_t at = row;
    while (at != kNoRow && depth[at] == unknown) {
      depth[at] = open;
      chain.push_back(at);
      at = nodes.parent.has(at) ? row_of(rows, nodes.parent[at]) : kNoRow;
    }
    std::uint32_t above = at == kNoRow || depth[at] == open ? 0 : depth[at] + 1;  // open: callers in a circle
    for (; !chain.empty(); chain.pop_back()) depth[chain.back()] = above++;
  }
  return depth;
}

}  // namespace stepscope
