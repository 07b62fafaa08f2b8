#include "session/what_if_candidates.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/answer_parts.h"
#include "session/changes.h"

namespace stepscope::session {
namespace {

constexpr std::size_t kMostNames = 6, kMostRanks = 16;

using Times = std::map<std::string, std::int64_t>;

std::vector<std::string> longest(const Times& times) {
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  for (const auto& [name, time_ns] : times) sorted.emplace_back(time_ns, name);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostNames); i++) names.push_back(sorted[i].second);
  return names;
}

// Families of device work and operators, by their time; an operator counts what it does itself.
std::vector<Change> by_name(const Run& run, const simulate::ReplayGraph& graph) {
  Times families, operators;
  for (std::size_t node = 0; node < graph.size(); node++) {
    const std::uint32_t lane = graph.lane[node];
    if (lane == simulate::kNone) continue;
    const Trace& trace = run.traces[graph.lanes[lane].trace];
    const std::int64_t cost = graph.costs.cost_ns[node];
    if (graph.lanes[lane].device) {
      const std::string& family = trace.class_rules[trace.device.rule[graph.row[node]]].family;
      if (!family.empty()) families[family] += cost;
    } else if (graph.slice[node] != SliceId::none && trace.kind(graph.slice[node]) == SliceKind::cpu_op) {
      operators[std::string(trace.name(graph.slice[node]))] += cost;
    }
  }
  std::vector<Change> changes;
  for (const std::string& family : longest(families)) {
    changes.push_back({.kind = ChangeKind::scale, .target = "kernel:" + family, .value = 0.5});
  }
  for (const std::string& name : longest(operators)) {
    changes.push_back({.kind = ChangeKind::scale, .target = "op:" + name, .value = 0.5});
  }
  return changes;
}

}  // namespace

Table candidates_table(const Run& run, const simulate::Predictor& predictor) {
  Table table{.name = "candidates",
              .columns = {{"change", ValueType::text, Unit::none,
                           "An option of stepscope what-if without its dashes, and a line of the page What if"},
                          {"speedup_low", ValueType::real, Unit::none, "Step time before over after, the lower end"},
                          {"speedup_high", ValueType::real, Unit::none, "The upper end"},
                          {"binds", ValueType::text, Unit::none, "What bounds the steps then"}}};
  std::vector<Change> changes{{.kind = ChangeKind::data_loader, .value = 0},
                              {.kind = ChangeKind::no_waits},
                              {.kind = ChangeKind::overlap},
                              {.kind = ChangeKind::bandwidth, .value = 2},
                              {.kind = ChangeKind::scale, .target = "host:*", .value = 0.5},
                              {.kind = ChangeKind::scale, .target = "kernel:*", .value = 0.5}};
  for (std::size_t i = 0; i < std::min(run.traces.size(), kMostRanks); i++) {
    changes.push_back({.kind = ChangeKind::level_rank, .rank = run.traces[i].rank.rank});
  }
  for (Change& change : by_name(run, predictor.graph())) changes.push_back(std::move(change));
  for (const Change& change : changes) {
    const Result<simulate::Prediction> made = predictor.predict(std::span(&change, 1));
    if (!made) continue;
    table.rows.push_back({change_text(change), made->speedup_low, made->speedup_high, text(made->binds)});
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const auto& a, const auto& b) { return std::get<double>(a[1]) > std::get<double>(b[1]); });
  return table;
}

}  // namespace stepscope::session
