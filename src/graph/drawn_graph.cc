#include "graph/drawn_graph.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

#include "base/key_index.h"
#include "model/node_graph.h"
#include "model/path_tree.h"

namespace stepscope::graph {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kArrowsPerBox = 4;

// One graph: who calls whom as rows, and the rows with callers before what they call.
struct Calls {
  const Trace* trace;
  std::unordered_map<std::int64_t, std::uint32_t> row_of;
  std::vector<std::uint32_t> caller, order;

  explicit Calls(const Trace& of) : trace(&of), row_of(rows_by_id(of.nodes)) {
    const auto rows = static_cast<std::uint32_t>(of.nodes.size());
    for (std::uint32_t row = 0; row < rows; row++) {
      caller.push_back(of.nodes.parent.has(row) ? this->row(of.nodes.parent[row]) : kNone);
    }
    std::vector<char> met(rows, 0);  // 1: in the chain, 2: in the order
    std::vector<std::uint32_t> chain;
    for (std::uint32_t row = 0; row < rows; row++) {
      std::uint32_t at = row;
      for (; at != kNone && met[at] == 0; at = caller[at]) {
        met[at] = 1;
        chain.push_back(at);
      }
      if (at != kNone && met[at] == 1) caller[chain.back()] = kNone;  // it is among its own callers
      for (; !chain.empty(); chain.pop_back()) {
        met[chain.back()] = 2;
        order.push_back(chain.back());
      }
    }
  }
  std::uint32_t row(std::int64_t id) const {
    const auto found = row_of.find(id);
    return found == row_of.end() ? kNone : found->second;
  }
};

// One number for all names, of all graphs, that differ only in what changes from call to call.
class Names {
 public:
  std::uint32_t operator()(std::string_view name) {
    return known_.try_emplace(path_name(name), static_cast<std::uint32_t>(known_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> known_;
};

struct Way {
  std::uint32_t parent;
  DrawnBox box;
  std::uint64_t all = 0;  // nodes, with those below
};

void add_node(DrawnBox& box, const GraphNodes& nodes, std::uint32_t row) {
  box.nodes++;
  if (!nodes.dur_ns.has(row)) return;
  box.timed++;
  std::int64_t sum = 0;
  box.dur_ns = __builtin_add_overflow(box.dur_ns, nodes.dur_ns[row], &sum) ? INT64_MAX : sum;
}

DrawnBox box_of(const Trace& trace, std::uint32_t row, std::uint32_t parent) {
  return {.parent = parent,
          .rank = trace.rank.rank,
          .name = trace.strings[trace.nodes.name[row]],
          .kind = trace.nodes.kind[row],
          .id = trace.nodes.id[row]};
}

// The box of each node, by graph and row.
using Places = std::vector<std::vector<std::uint32_t>>;

Places draw_each(const std::vector<Calls>& graphs, DrawnGraph& out) {
  Places places;
  for (const Calls& calls : graphs) {
    std::vector<std::uint32_t>& place = places.emplace_back(calls.caller.size(), kNoBox);
    for (const std::uint32_t row : calls.order) {
      place[row] = static_cast<std::uint32_t>(out.boxes.size());
      const std::uint32_t caller = calls.caller[row];
      out.boxes.push_back(box_of(*calls.trace, row, caller == kNone ? kNoBox : place[caller]));
      add_node(out.boxes.back(), calls.trace->nodes, row);
    }
  }
  return places;
}

// Every way in which a name was reached, callers first; `places` gets the way of each node.
std::vector<Way> find_ways(const std::vector<Calls>& graphs, Places& places) {
  std::vector<Way> ways;
  KeyIndex index;
  Names names;
  for (std::size_t graph = 0; graph < graphs.size(); graph++) {
    const Calls& calls = graphs[graph];
    const Trace& trace = *calls.trace;
    std::vector<std::uint32_t> keys(trace.strings.size() + 1, kNone);
    std::vector<std::uint32_t>& place = places.emplace_back(calls.caller.size(), kNone);
    for (const std::uint32_t row : calls.order) {
      const StringId name = trace.nodes.name[row];
      std::uint32_t& key = keys[name == StringId::none ? keys.size() - 1 : static_cast<std::size_t>(name)];
      if (key == kNone) key = names(trace.strings[name]);
      const std::uint32_t parent = calls.caller[row] == kNone ? kNone : place[calls.caller[row]];
      const std::uint64_t above = parent == kNone ? graph : graphs.size() + parent;
      place[row] = index[above << 32 | key];
      if (place[row] == ways.size()) ways.push_back({parent, box_of(trace, row, kNoBox)});
      add_node(ways[place[row]].box, trace.nodes, row);
    }
  }
  for (std::size_t way = ways.size(); way-- > 0;) {
    ways[way].all += ways[way].box.nodes;
    if (ways[way].parent != kNone) ways[ways[way].parent].all += ways[way].all;
  }
  return ways;
}

// Those that get a box: the ones with the most nodes. A caller has more than what it calls, so it is among them too.
// The last box is kept for roots that get none, if there are any.
std::vector<bool> choose(const std::vector<Way>& ways, std::size_t most) {
  std::vector<bool> chosen(ways.size(), ways.size() <= most);
  if (ways.size() <= most) return chosen;
  std::vector<std::uint32_t> order(ways.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return ways[a].all > ways[b].all; });
  for (std::size_t i = 0; i < most; i++) chosen[order[i]] = true;
  for (std::size_t way = 0; way < ways.size(); way++) {
    if (ways[way].parent == kNone && !chosen[way]) chosen[order[most - 1]] = false;
  }
  return chosen;
}

Places draw_ways(const std::vector<Calls>& graphs, std::size_t most, DrawnGraph& out) {
  Places places;
  std::vector<Way> ways = find_ways(graphs, places);
  const std::vector<bool> chosen = choose(ways, most);
  const auto rest = static_cast<std::uint32_t>(std::count(chosen.begin(), chosen.end(), true));
  DrawnBox others{.others = true};
  std::vector<std::uint32_t> box_at(ways.size());
  for (std::size_t way = 0; way < ways.size(); way++) {
    DrawnBox& box = ways[way].box;
    const std::uint32_t above = ways[way].parent == kNone ? kNoBox : box_at[ways[way].parent];
    box_at[way] = chosen[way] ? static_cast<std::uint32_t>(out.boxes.size()) : above == kNoBox ? rest : above;
    if (chosen[way]) {
      box.parent = above;
      out.boxes.push_back(box);
    } else if (box_at[way] == rest) {
      others.nodes += box.nodes;
    } else {
      out.boxes[box_at[way]].inside += box.nodes;
    }
  }
  if (others.nodes > 0) out.boxes.push_back(others);
  for (std::vector<std::uint32_t>& place : places) {
    for (std::uint32_t& at : place) at = box_at[at];
  }
  return places;
}

void add_arrows(const std::vector<Calls>& graphs, const Places& places, DrawnGraph& out) {
  KeyIndex index;
  for (std::size_t graph = 0; graph < graphs.size(); graph++) {
    const GraphNodes& nodes = graphs[graph].trace->nodes;
    const std::vector<std::uint32_t>& place = places[graph];
    for (std::uint32_t row = 0; row < nodes.size(); row++) {
      for (std::uint32_t at = nodes.dependency_begin[row]; at < nodes.dependency_begin[row + 1]; at++) {
        const std::uint32_t on = graphs[graph].row(nodes.depends_on[at]);
        if (on == kNone) continue;
        if (place[on] == place[row]) {
          out.waits_inside++;
          continue;
        }
        const std::uint32_t arrow = index[std::uint64_t{place[on]} << 32 | place[row]];
        if (arrow == out.arrows.size()) out.arrows.push_back({place[on], place[row], 0});
        out.arrows[arrow].waits++;
      }
    }
  }
}

void thin_out(DrawnGraph& out, std::size_t most) {
  if (out.arrows.size() <= most) return;
  std::stable_sort(out.arrows.begin(), out.arrows.end(),
                   [](const DrawnArrow& a, const DrawnArrow& b) { return a.waits > b.waits; });
  for (std::size_t i = most; i < out.arrows.size(); i++) out.waits_omitted += out.arrows[i].waits;
  out.arrows.resize(most);
}

}  // namespace

DrawnGraph draw_graph(const Run& run, std::size_t most_boxes) {
  DrawnGraph out;
  std::vector<Calls> graphs;
  for (const Trace& trace : run.traces) {
    if (trace.nodes.size() == 0) continue;
    graphs.emplace_back(trace);
    out.nodes += trace.nodes.size();
  }
  out.graphs = graphs.size();
  const Places places = out.nodes <= most_boxes ? draw_each(graphs, out) : draw_ways(graphs, most_boxes, out);
  add_arrows(graphs, places, out);
  thin_out(out, kArrowsPerBox * most_boxes);
  return out;
}

}  // namespace stepscope::graph
