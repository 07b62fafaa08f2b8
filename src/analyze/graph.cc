// graph: what an execution trace or Chakra file holds. It says what depends on what, mostly without times, so the
// question is what was recorded: nodes by kind and name, how deep calls nest, which collectives of which size.
#include <algorithm>
#include <map>

#include "analyze/analysis.h"
#include "base/key_index.h"
#include "model/answer_parts.h"
#include "model/node_graph.h"

namespace stepscope::analyze {
namespace {

constexpr std::string_view kNoGraph =
    "No execution trace was given. Record one with torch's ExecutionTraceObserver and give it beside the profiler's "
    "trace.";

struct Sum {
  std::int64_t nodes = 0, dur_ns = 0, with_time = 0;

  void add(const GraphNodes& all, std::uint32_t row) {
    nodes++;
    if (!all.dur_ns.has(row)) return;
    dur_ns += all.dur_ns[row];
    with_time++;
  }
  Value time() const { return with_time > 0 ? Value(dur_ns) : Value(); }
};

Table kinds_table(const Run& run) {
  Table table{.name = "kinds",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"kind", ValueType::text, Unit::none, "What the nodes stand for"},
                          {"nodes", ValueType::integer, Unit::count, "Nodes"},
                          {"dur_ns", ValueType::integer, Unit::ns, "Sum of their durations; unknown: none is given"}}};
  for (const Trace& trace : run.traces) {
    std::array<Sum, kNodeKinds> sums{};
    for (std::uint32_t row = 0; row < trace.nodes.size(); row++) {
      sums[static_cast<std::size_t>(trace.nodes.kind[row])].add(trace.nodes, row);
    }
    for (std::size_t kind = 0; kind < kNodeKinds; kind++) {
      if (sums[kind].nodes == 0) continue;
      table.rows.push_back(
          {trace.rank.rank, std::string(to_string(static_cast<NodeKind>(kind))), sums[kind].nodes, sums[kind].time()});
    }
  }
  return table;
}

Table names_table(const Run& run) {
  Table table{.name = "names",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"name", ValueType::text, Unit::none, "Name of the nodes"},
                          {"kind", ValueType::text, Unit::none, "What the first of them stands for"},
                          {"nodes", ValueType::integer, Unit::count, "Nodes of that name"},
                          {"shapes", ValueType::integer, Unit::count, "Different input shapes among them"},
                          {"dur_ns", ValueType::integer, Unit::ns, "Sum of their durations; unknown: none is given"}}};
  for (const Trace& trace : run.traces) {
    const GraphNodes& all = trace.nodes;
    KeyIndex names, shapes;
    std::vector<Sum> sums;
    std::vector<std::int64_t> shape_counts;
    std::vector<std::uint32_t> examples;
    for (std::uint32_t row = 0; row < all.size(); row++) {
      const auto name = static_cast<std::uint32_t>(all.name[row]);
      const std::uint32_t at = names[name];
      if (at == sums.size()) {
        sums.emplace_back();
        shape_counts.push_back(0);
        examples.push_back(row);
      }
      sums[at].add(all, row);
      const std::size_t known = shapes.size();
      const auto dims = static_cast<std::uint32_t>(all.input_dims[row]);
      if (shapes[std::uint64_t{name} << 32 | dims] == known) shape_counts[at]++;
    }
    for (std::uint32_t at = 0; at < sums.size(); at++) {
      table.rows.push_back({trace.rank.rank, text(trace.strings[all.name[examples[at]]]),
                            std::string(to_string(all.kind[examples[at]])), sums[at].nodes, shape_counts[at],
                            sums[at].time()});
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return std::get<std::int64_t>(a[3]) > std::get<std::int64_t>(b[3]);
  });
  return table;
}

Table collectives_table(const Run& run) {
  Table table{
      .name = "collectives",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"kind", ValueType::text, Unit::none, "Collective as recorded"},
                  {"group", ValueType::text, Unit::none, "Process group; unknown: not recorded"},
                  {"nodes", ValueType::integer, Unit::count, "Calls"},
                  {"bytes", ValueType::integer, Unit::bytes, "Bytes of all calls; unknown where one says none"}}};
  for (const Trace& trace : run.traces) {
    const GraphNodes& all = trace.nodes;
    struct Line {
      std::int64_t nodes = 0, bytes = 0;
      bool known = true;
    };
    std::map<std::pair<std::string_view, std::string_view>, Line> lines;
    for (std::uint32_t row = 0; row < all.size(); row++) {
      const NodeKind kind = all.kind[row];
      if (kind != NodeKind::collective && kind != NodeKind::send && kind != NodeKind::receive) continue;
      const StringId recorded = all.collective[row] == StringId::none ? all.name[row] : all.collective[row];
      Line& line = lines[{trace.strings[recorded], trace.strings[all.group_name[row]]}];
      line.nodes++;
      line.known &= all.comm_bytes.has(row);
      if (all.comm_bytes.has(row)) line.bytes += all.comm_bytes[row];
    }
    for (const auto& [key, line] : lines) {
      table.rows.push_back(
          {trace.rank.rank, text(key.first), text(key.second), line.nodes, line.known ? Value(line.bytes) : Value()});
    }
  }
  return table;
}

void add_scalars(Answer& answer, const Run& run) {
  std::int64_t nodes = 0, dependencies = 0, roots = 0, depth = 0, timed = 0;
  for (const Trace& trace : run.traces) {
    const GraphNodes& all = trace.nodes;
    nodes += static_cast<std::int64_t>(all.size());
    dependencies += static_cast<std::int64_t>(all.depends_on.size());
    for (const std::uint32_t each : node_depths(all)) depth = std::max<std::int64_t>(depth, each);
    for (std::uint32_t row = 0; row < all.size(); row++) {
      roots += all.parent.has(row) ? 0 : 1;
      timed += all.dur_ns.has(row) ? 1 : 0;
    }
  }
  const auto known = [&](std::int64_t number) { return nodes > 0 ? Value(number) : Value(); };
  const auto meaning = [&](std::string_view what) { return nodes > 0 ? what : kNoGraph; };
  add_scalar(answer, "node_count", known(nodes), Unit::count, meaning("Nodes of all ranks"));
  add_scalar(answer, "dependency_count", known(dependencies), Unit::count,
             meaning("Dependencies beside those on the caller"));
  add_scalar(answer, "root_count", known(roots), Unit::count, meaning("Nodes without a caller"));
  add_scalar(answer, "depth", known(depth), Unit::count, meaning("How deep calls nest"));
  add_scalar(answer, "timed_count", known(timed), Unit::count, meaning("Nodes that say how long they took"));
}

Result<Answer> run_graph(const Run& run, const AnalyzeOptions& options) {
  Answer answer;
  add_scalars(answer, run);
  const bool any = std::any_of(run.traces.begin(), run.traces.end(), [](const Trace& t) { return t.nodes.size() > 0; });
  if (!any) {
    answer.notes.push_back(std::string(kNoGraph));
    return answer;
  }
  Table names = names_table(run);
  limit_rows(answer, names, options.max_rows, "those with fewer nodes");
  answer.tables = {kinds_table(run), std::move(names), collectives_table(run)};
  return answer;
}

}  // namespace

Analysis graph_analysis() {
  return {"graph", "What does the execution trace hold, and what depends on what?", run_graph};
}

}  // namespace stepscope::analyze
