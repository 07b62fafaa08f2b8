#include "diagnose/sampled.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "model/telemetry.h"

namespace stepscope::diagnose {
namespace {

std::optional<double> rate_during(const Trace& history, const Sampled& one) {
  if (one.samples.size() == 0) return std::nullopt;
  const Interval steps{std::max(history.steps.front().start_ns, one.samples.t_ns.front()),
                       std::min(history.steps.back().end_ns, one.samples.t_ns.back())};
  if (steps.end <= steps.start) return std::nullopt;
  const std::optional<double> grown = growth(one.samples, steps);
  if (!grown) return std::nullopt;
  return *grown / static_cast<double>(steps.end - steps.start);
}

// A series of the rank itself, by which its machine is known; nullptr: none was sampled.
const SampledSeries* series_of_rank(const std::vector<Sampled>& all, std::int64_t rank) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Sampled& one) { return one.about->rank == rank; });
  return found == all.end() ? nullptr : found->about;
}

// Of each series with that name of the machine and its cgroups.
std::vector<double> rates_on_machine(const Run& run, std::int64_t rank, std::string_view name) {
  std::vector<double> out;
  const Trace* history = marks_of_rank(run, rank);
  const std::vector<Sampled> all = sampled_series(run);
  const SampledSeries* own = series_of_rank(all, rank);
  if (history == nullptr || own == nullptr) return out;
  for (const Sampled& one : all) {
    if (one.about->rank || one.about->name != name || one.about->host != own->host) continue;
    if (const auto rate = rate_during(*history, one)) out.push_back(*rate);
  }
  return out;
}

// Of a gauge of that target on the rank's machine, its mean over the rank's steps.
std::optional<double> level_of(const Run& run, const std::vector<Sampled>& all, std::int64_t rank,
                               std::string_view target, std::string_view name) {
  const Trace* history = marks_of_rank(run, rank);
  const SampledSeries* own = series_of_rank(all, rank);
  if (history == nullptr || own == nullptr) return std::nullopt;
  for (const Sampled& one : all) {
    if (one.about->target != target || one.about->name != name || one.about->host != own->host) continue;
    return level(one.samples, {history->steps.front().start_ns, history->steps.back().end_ns});
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> rate_in_steps(const Run& run, std::int64_t rank, std::string_view name) {
  const Trace* history = marks_of_rank(run, rank);
  if (history == nullptr) return std::nullopt;
  for (const Sampled& one : sampled_series(run)) {
    if (one.about->rank == rank && one.about->name == name && one.samples.size() > 0) {
      return rate_during(*history, one);
    }
  }
  return std::nullopt;
}

std::optional<double> rate_on_machine(const Run& run, std::int64_t rank, std::string_view name) {
  const std::vector<double> rates = rates_on_machine(run, rank, name);
  if (rates.empty()) return std::nullopt;
  return *std::max_element(rates.begin(), rates.end());
}

std::optional<double> sum_on_machine(const Run& run, std::int64_t rank, std::string_view name) {
  const std::vector<double> rates = rates_on_machine(run, rank, name);
  if (rates.empty()) return std::nullopt;
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

std::optional<double> level_on_machine(const Run& run, std::int64_t rank, std::string_view name) {
  return level_of(run, sampled_series(run), rank, "host", name);
}

std::optional<double> level_of_device(const Run& run, std::int64_t rank, std::string_view name) {
  const std::vector<Sampled> all = sampled_series(run);
  return level_of(run, all, rank, gpu_of_rank(all, rank), name);
}

std::optional<double> ports_bytes_per_ns(const Run& run, std::int64_t rank) {
  const std::vector<Sampled> all = sampled_series(run);
  const SampledSeries* own = series_of_rank(all, rank);
  std::optional<double> sum;
  for (const Sampled& one : all) {
    const bool is_port = one.about->collector == "infiniband" && one.about->name == "link_rate";
    if (own == nullptr || !is_port || one.about->host != own->host || one.samples.size() == 0) continue;
    sum = sum.value_or(0) + one.samples.v.back() / 1e9;
  }
  return sum;
}

}  // namespace stepscope::diagnose
