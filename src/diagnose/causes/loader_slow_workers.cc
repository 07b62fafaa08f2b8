// Workers of a data loader that do not keep up, where more of them would have no core.
#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/gathered.h"
#include "diagnose/loading.h"
#include "diagnose/queries.h"
#include "diagnose/reading.h"
#include "diagnose/sampled.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {
namespace {

// The function that takes most of the workers' time, as they measured it themselves: it is no part of the recording.
void put_slowest(const Case& about, Finding& finding) {
  const std::string function = text_set(about.trace, "loader_function"), file = text_set(about.trace, "loader_file");
  const auto line = number_set(about.trace, "loader_line");
  const auto share = ratio_set(about.trace, "loader_permille"), busy = loader_busy(about.trace);
  if (function.empty() || file.empty() || !line || !share) return;
  finding.where.function = function;
  finding.where.file = file;
  finding.where.line = line;
  finding.sentence += ": " + function;
  finding.evidence.push_back({.text = "Of the time of a batch in this function",
                              .value = *share,
                              .unit = Unit::ratio,
                              .query = setting_of("loader_permille")});
  if (!busy) return;
  finding.evidence.push_back({.text = "Of their time the workers make batches",
                              .value = *busy,
                              .unit = Unit::ratio,
                              .query = setting_of("loader_busy_permille")});
}

// Part of the time outside the loader in which the thread of the steps could run and had no core, since the workers had
// it; 0: cores are idle, or the workers hardly use any.
double lost_to_workers(const Case& about, const Loading& load) {
  constexpr double kMostIdle = 0.25, kLeastBusy = 0.2, kLeastLost = 0.1, kMostLost = 0.7;
  if (!load.idle_cores || *load.idle_cores >= kMostIdle || load.busy_workers.value_or(0) < kLeastBusy) return 0;
  const double waits = rate_in_steps(about.run, about.trace.rank.rank, "main_thread_wait").value_or(0);
  const double rest = std::max(0.1, 1 - about.share(load.time_ns));  // while it waits for a batch it wants no core
  const double lost = std::min(waits, *load.busy_workers) / rest;
  return lost < kLeastLost ? 0 : std::min(lost, kMostLost);
}

// All that the thread of the steps does is longer for it, half of which at least is the workers' doing.
void add_lost(const Case& about, double lost, Diagnosis& found) {
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (work.device || work.role != simulate::NodeRole::host) return;
    const auto cost = static_cast<double>(work.cost_ns);
    found.rewrite.nodes.push_back(
        {node, static_cast<std::int64_t>((1 - lost) * cost), static_cast<std::int64_t>((1 - lost / 2) * cost)});
  });
  found.rest_stays = true;
  found.finding.evidence.push_back({.text = "Of the rest it waits for a core",
                                    .value = lost,
                                    .unit = Unit::ratio,
                                    .query = samples_of("main_thread_wait")});
}

}  // namespace

Cause loader_slow_workers_cause() {
  return {"loader_slow_workers", "Slow workers of the data loader", [](const Case& about, std::vector<Diagnosis>& out) {
            const Loading& load = loading(about);
            if (load.where != LoadsIn::workers || about.share(load.time_ns) < kWorthSaying) return;
            const double lost = lost_to_workers(about, load);
            // Else that is the cause.
            if (waits_for_disks(about) || (lost == 0 && (has_room(load) || keeps_up(load)))) return;
            Diagnosis found =
                waits_for_loader(about, load,
                                 lost > 0 ? "The workers of the data loader take the cores that the steps need"
                                          : "The workers of the data loader do not keep up",
                                 "Make __getitem__ and collate_fn cheaper, or prepare the data before; more workers "
                                 "would help only with cores of their own",
                                 0, 0.1);
            if (lost > 0) add_lost(about, lost, found);
            put_slowest(about, found.finding);
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
