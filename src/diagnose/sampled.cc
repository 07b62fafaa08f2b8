#include "diagnose/sampled.h"

#include <algorithm>

#include "model/telemetry.h"

namespace stepscope::diagnose {

std::optional<double> rate_in_steps(const Run& run, std::int64_t rank, std::string_view name) {
  const auto history =
      std::find_if(run.history.begin(), run.history.end(), [&](const Trace& one) { return one.rank.rank == rank; });
  if (history == run.history.end() || history->steps.empty()) return std::nullopt;
  for (const Sampled& one : sampled_series(run)) {
    if (one.about->rank != rank || one.about->name != name || one.samples.size() == 0) continue;
    const Interval steps{std::max(history->steps.front().start_ns, one.samples.t_ns.front()),
                         std::min(history->steps.back().end_ns, one.samples.t_ns.back())};
    if (steps.end <= steps.start) return std::nullopt;
    const std::optional<double> grown = growth(one.samples, steps);
    if (!grown) return std::nullopt;
    return *grown / static_cast<double>(steps.end - steps.start);
  }
  return std::nullopt;
}

}  // namespace stepscope::diagnose
