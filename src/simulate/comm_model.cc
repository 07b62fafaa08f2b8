#include "simulate/comm_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/answer_parts.h"

namespace stepscope::simulate {
namespace {

struct Size {
  double bytes = 0, ns = 0;  // ns: the median of its transfers
};

std::vector<Size> sizes_of(const CommModel& model, const ReplayGraph& graph) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_size;
  for (std::size_t i = 0; i < model.nodes.size(); i++) {
    if (model.bytes[i] > 0) by_size[model.bytes[i]].push_back(graph.costs.cost_ns[model.nodes[i]]);
  }
  std::vector<Size> sizes;
  for (auto& [bytes, times] : by_size) {
    sizes.push_back({static_cast<double>(bytes), static_cast<double>(*median(std::move(times)))});
  }
  return sizes;
}

// Sizes closer to each other than this tell less of the latency than their times scatter.
constexpr double kFarApart = 4;

// Least squares of the relative error, so that small messages say as much as large ones; neither part is negative.
void fit(CommModel& model, const std::vector<Size>& sizes) {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Size& size : sizes) {
    const double weight = 1 / std::max(size.ns * size.ns, 1.0);
    w += weight;
    x += weight * size.bytes;
    y += weight * size.ns;
    xx += weight * size.bytes * size.bytes;
    xy += weight * size.bytes * size.ns;
  }
  const double spread = w * xx - x * x;
  model.parted = spread > 0 && sizes.back().bytes >= kFarApart * sizes.front().bytes;
  double slope = model.parted ? (w * xy - x * y) / spread : xy / xx;
  double latency = model.parted ? (y - slope * x) / w : 0;
  if (latency < 0) latency = 0, slope = xy / xx;
  if (slope < 0) slope = 0, latency = y / w;
  model.latency_ns = latency;
  model.ns_per_byte = slope;
}

void judge(CommModel& model, const ReplayGraph& graph) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < model.nodes.size(); i++) {
    const auto recorded = static_cast<double>(graph.costs.cost_ns[model.nodes[i]]);
    if (model.bytes[i] <= 0 || recorded <= 0) continue;
    const double fitted = model.latency_ns + *model.ns_per_byte * static_cast<double>(model.bytes[i]);
    errors.push_back(std::abs(fitted / recorded - 1));
  }
  std::sort(errors.begin(), errors.end());
  model.residual = quantile(errors, 0.5);
}

}  // namespace

std::vector<CommModel> comm_models(const Run& run, const ReplayGraph& graph) {
  std::map<std::pair<CollectiveKind, std::int64_t>, CommModel> models;
  for (std::uint32_t node = 0; node < graph.size(); node++) {
    if (graph.role[node] != NodeRole::communicate) continue;
    const std::uint32_t match = graph.match[node];
    CommModel one;
    std::int64_t bytes = Match::kUnknownBytes;
    if (match != kNone) {
      const Match& row = run.matches.rows[match];
      one.kind = row.kind;
      one.group_size = run.matches.lanes[row.lane].size;
      one.met = run.matches.of(match).size() > 1;
      if (one.met) one.group_size = std::max(one.group_size, static_cast<std::int64_t>(run.matches.of(match).size()));
      bytes = row.bytes;
    }
    CommModel& model = models.emplace(std::pair(one.kind, one.group_size), one).first->second;
    model.nodes.push_back(node);
    model.bytes.push_back(bytes);
    model.met = model.met && one.met;
  }
  std::vector<CommModel> out;
  for (auto& [key, model] : models) {
    const std::vector<Size> sizes = sizes_of(model, graph);
    model.sizes = static_cast<std::int64_t>(sizes.size());
    if (!sizes.empty()) {
      fit(model, sizes);
      judge(model, graph);
    }
    out.push_back(std::move(model));
  }
  return out;
}

std::int64_t scaled_transfer(const CommModel& model, std::int64_t cost_ns, double bytes_factor, double latency_factor) {
  const auto cost = static_cast<double>(cost_ns);
  const double latency = model.parted ? std::min(model.latency_ns, cost) : 0;
  return std::llround(std::min(latency * latency_factor + (cost - latency) * bytes_factor, kMostNs));
}

}  // namespace stepscope::simulate
