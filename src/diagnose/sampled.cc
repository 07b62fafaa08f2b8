#include "diagnose/sampled.h"

#include <algorithm>
#include <vector>

#include "model/telemetry.h"

namespace stepscope::diagnose {
const Trace* history_of(const Run& run, std::int64_t rank) {
  const auto found =
      std::find_if(run.history.begin(), run.history.end(), [&](const Trace& one) { return one.rank.rank == rank; });
  return found == run.history.end() || found->steps.empty() ? nullptr : &*found;
}

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

}  // namespace

std::optional<double> rate_in_steps(const Run& run, std::int64_t rank, std::string_view name) {
  const Trace* history = history_of(run, rank);
  if (history == nullptr) return std::nullopt;
  for (const Sampled& one : sampled_series(run)) {
    if (one.about->rank == rank && one.about->name == name && one.samples.size() > 0) {
      return rate_during(*history, one);
    }
  }
  return std::nullopt;
}

std::optional<double> rate_on_machine(const Run& run, std::int64_t rank, std::string_view name) {
  const Trace* history = history_of(run, rank);
  if (history == nullptr) return std::nullopt;
  const std::vector<Sampled> all = sampled_series(run);
  const auto of_rank =
      std::find_if(all.begin(), all.end(), [&](const Sampled& one) { return one.about->rank == rank; });
  if (of_rank == all.end()) return std::nullopt;
  std::optional<double> fastest;
  for (const Sampled& one : all) {
    if (one.about->rank || one.about->name != name || one.about->host != of_rank->about->host) continue;
    if (const auto rate = rate_during(*history, one)) fastest = std::max(fastest.value_or(0), *rate);
  }
  return fastest;
}

}  // namespace stepscope::diagnose
