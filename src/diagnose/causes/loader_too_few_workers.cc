// Workers of a data loader that do not keep up, while cores are idle.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "diagnose/loading.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {
namespace {

// So many that the steps would not wait for them; workers that compute have no use for more than there are idle cores.
std::string more_workers(const Case& about, const Loading& load) {
  constexpr double kMostWaits = 0.9;  // of the steps: what is slower needs more than workers
  constexpr double kNothing = 1e-6;   // that a quotient may be too large by
  const auto now = number_set(about.trace, "loader_workers");
  if (!now || *now < 1) return "Raise num_workers by the idle cores";
  const auto workers = static_cast<double>(*now);
  double needed = std::ceil(workers / (1 - std::min(about.share(load.time_ns), kMostWaits)) - kNothing);
  const auto idle = idle_cores_of_rank(about, load);
  if (!load.waiting_workers && idle) needed = std::min(needed, workers + std::floor(*idle));
  return fmt::format("Raise num_workers from {} to {:.0f}", *now, std::max(needed, workers + 1));
}

}  // namespace

Cause loader_too_few_workers_cause() {
  return {"loader_too_few_workers", "Too few workers of the data loader",
          [](const Case& about, std::vector<Diagnosis>& out) {
            const Loading& load = loading(about);
            if (load.where != LoadsIn::workers || about.share(load.time_ns) < kWorthSaying) return;
            if (!has_room(load) || keeps_up(load) || load.makes_in_time || load.lost > 0) return;
            out.push_back(waits_for_loader(about, load,
                                           "The workers of the data loader do not keep up, while cores are idle",
                                           more_workers(about, load), 0, 0.1));
            put_where_it_is_made(about, load, out.back().finding.where);
          }};
}

}  // namespace stepscope::diagnose::causes
