// critical_path_analysis: the longest chain of dependent work in one annotated range, and what bounds it.
//
// The window: host events with a duration that start in the range, and the device work that they launched. Device work
// of graphs is linked by its stream only, for HTA's queue does not know graphs.
#include "compat/compat.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "compat/hta/critical_path_analysis/builder.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

std::string_view to_string(EdgeType type) {
  switch (type) {
    case EdgeType::operation: return "critical_path_operator";
    case EdgeType::dependency: return "critical_path_dependency";
    case EdgeType::launch_delay: return "critical_path_kernel_launch_delay";
    case EdgeType::kernel_delay: return "critical_path_kernel_kernel_delay";
    case EdgeType::sync: break;
  }
  return "critical_path_sync_dependency";
}

std::string_view bound_by(const PathBuilder& builder, const PathEdge& edge) {
  switch (edge.type) {
    case EdgeType::kernel_delay: return "gpu_kernel_kernel_overhead";
    case EdgeType::launch_delay: return "gpu_kernel_launch_overhead";
    case EdgeType::dependency:
    case EdgeType::sync: return "";
    case EdgeType::operation: break;
  }
  const Row* const row = edge.event ? builder.row(*edge.event) : nullptr;
  if (row == nullptr || row->stream < 0) return "cpu_bound";
  return kernel_type(short_name(builder.table().name(*row))) == KernelType::communication ? "gpu_communication_bound"
                                                                                          : "gpu_compute_bound";
}

struct Range {
  double start, end;
};

std::optional<Range> find_range(const EventTable& table, std::string_view annotation, std::size_t instance) {
  for (const Row& row : table.rows()) {
    if (table.name(row).find(annotation) == std::string_view::npos) continue;
    if (instance-- == 0) return Range{row.ts, row.end()};
  }
  return std::nullopt;
}

std::vector<Row> window_of(const EventTable& table, const Range& range) {
  std::vector<Row> window;
  const auto counts = [&](const Row& row) { return row.ts >= range.start && row.ts <= range.end && row.dur > 0; };
  for (const Row& row : table.rows()) {
    if (row.stream == kNone) {
      if (!counts(row)) continue;
      window.push_back(row);
    } else if (table.name(row) == "Stream Wait Event") {
      window.push_back(row);
    }
    if (row.stream != kNone || row.index_correlation <= 0) continue;
    const Row* const work = table.at(row.index_correlation);
    if (work != nullptr && work->stream != kNone) window.push_back(*work);
  }
  std::sort(window.begin(), window.end(), [](const Row& a, const Row& b) { return a.index < b.index; });
  window.erase(std::unique(window.begin(), window.end(), [](const Row& a, const Row& b) { return a.index == b.index; }),
               window.end());
  return window;
}

// HTA refuses a graph in which a stream waits for itself.
bool waits_for_itself(const PathBuilder& builder) {
  const auto stream = [&](std::uint32_t node) {
    const Row* const row = builder.row(builder.graph.nodes[node].index);
    return row == nullptr ? kNone : row->stream;
  };
  const auto& edges = builder.graph.edges();
  return std::any_of(edges.begin(), edges.end(), [&](const PathEdge& edge) {
    return edge.type == EdgeType::sync && stream(edge.from) != kNone && stream(edge.from) == stream(edge.to);
  });
}

struct Sum {
  std::int64_t count = 0;
  double duration = 0;
};

struct PathTables {
  Table summary{.name = "summary",
                .columns = {whole("rank", "Rank"), whole("nodes", "Starts and ends of events in the graph"),
                            whole("edges", "Edges of the graph"), whole("cp_nodes", "Nodes of the path"),
                            whole("cp_edges", "Edges of the path"), number("cp_duration", "Length of the path, us")}};
  Table by_bound{.name = "by_bound",
                 .columns = {whole("rank", "Rank"), words("bound_by", "What bounds; empty: nothing takes time"),
                             number("duration", "On the path, us")}};
  Table by_type{.name = "by_type",
                .columns = {whole("rank", "Rank"), words("type", "Kind of edge"), whole("count", "Edges"),
                            number("sum", "On the path, us")}};
  Table path{.name = "path",
             .columns = {whole("rank", "Rank"), number("ts", "us since the earliest event of all ranks"),
                         number("duration", "us"), words("type", "Kind of edge"), words("bound_by", "What bounds"),
                         words("name", "Event that the time is attributed to")}};
};

void add_rank(const PathBuilder& builder, const std::vector<std::uint32_t>& path, PathTables& out) {
  const std::int64_t rank = builder.table().rank();
  std::map<std::string_view, Sum> bounds, types;
  double all = 0;
  for (const std::uint32_t at : path) {
    const PathEdge& edge = builder.graph.edges()[at];
    const std::string_view bound = bound_by(builder, edge), type = to_string(edge.type);
    for (Sum* const sum : {&bounds[bound], &types[type]}) {
      sum->count++;
      sum->duration += edge.weight;
    }
    all += edge.weight;
    const Row* const row = edge.event ? builder.row(*edge.event) : nullptr;
    out.path.rows.push_back({rank, builder.graph.nodes[edge.from].ts, edge.weight, std::string(type),
                             std::string(bound),
                             row == nullptr ? Value() : Value(std::string(builder.table().name(*row)))});
  }
  const auto edges = static_cast<std::int64_t>(path.size());
  out.summary.rows.push_back({rank, static_cast<std::int64_t>(builder.graph.used_nodes()),
                              static_cast<std::int64_t>(builder.graph.edges().size()), edges + 1, edges, all});
  for (const auto& [bound, sum] : bounds) out.by_bound.rows.push_back({rank, std::string(bound), sum.duration});
  for (const auto& [type, sum] : types) out.by_type.rows.push_back({rank, std::string(type), sum.count, sum.duration});
}

Result<Answer> run_critical_path_analysis(const Input& input) {
  Answer answer;
  PathTables out;
  const std::string annotation(input.argument("annotation"));
  for (const EventTable& table : input.tables().ranks) {
    const std::string rank = "Rank " + std::to_string(table.rank());
    const auto range = find_range(table, annotation, static_cast<std::size_t>(input.number("instance_id")));
    if (!range) {
      answer.notes.push_back(rank + " has no such annotation: " + annotation + ", instance " +
                             std::string(input.argument("instance_id")) + ".");
      continue;
    }
    PathBuilder builder(table, window_of(table, *range));
    builder.build();
    const auto path = builder.graph.longest_path();
    if (!path || waits_for_itself(builder)) {
      answer.notes.push_back(rank + ": the graph is not valid; work waits for itself.");
      continue;
    }
    add_rank(builder, *path, out);
  }
  answer.tables = {std::move(out.summary), std::move(out.by_bound), std::move(out.by_type), std::move(out.path)};
  return answer;
}

}  // namespace

Analysis critical_path_analysis_analysis() {
  return {"critical_path_analysis", "Which chain of work decides how long the step takes?", run_critical_path_analysis};
}

}  // namespace stepscope::compat::hta
