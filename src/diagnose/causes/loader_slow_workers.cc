// Workers of a data loader that do not keep up, where more of them would have no core.
#include <string>
#include <utility>

#include "diagnose/gathered.h"
#include "diagnose/inputs.h"
#include "diagnose/loading.h"
#include "diagnose/queries.h"
#include "diagnose/reading.h"
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

constexpr std::int64_t kGrain = 32768;  // elements that torch gives a thread at least

// All that the thread of the steps does is longer for it, half of which at least is the workers' doing.
void add_lost(const Case& about, const Loading& load, Diagnosis& found) {
  const double lost = load.lost;
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (work.trace != &about.trace || work.device || work.role != simulate::NodeRole::host) return;
    const auto cost = static_cast<double>(work.cost_ns);
    const auto is_large = [&](SliceId slice) {
      return slice != SliceId::none && inputs(about).of(*work.trace, slice).elements() >= kGrain;
    };
    // In the backward pass the operator has the inputs, and what autograd calls it by has none.
    const bool is_shared = work.operation != SliceId::none && (is_large(work.operation) || is_large(work.slice));
    const double most = is_shared ? load.lost_together : lost;
    found.rewrite.nodes.push_back(
        {node, static_cast<std::int64_t>((1 - most) * cost), static_cast<std::int64_t>((1 - lost / 2) * cost)});
  });
  found.rest_stays = true;
  put_doubt(found.finding, "that the steps wait for a core since the workers have it is inferred from samples");
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
            const double lost = load.lost;
            // Else that is the cause.
            if (waits_for_disks(about) || (lost == 0 && (has_room(load) || keeps_up(load) || load.makes_in_time)))
              return;
            Diagnosis found =
                waits_for_loader(about, load,
                                 lost > 0 ? "The workers of the data loader take the cores that the steps need"
                                          : "The workers of the data loader do not keep up",
                                 "Make __getitem__ and collate_fn cheaper, or prepare the data before; more workers "
                                 "would help only with cores of their own",
                                 0, 0.1);
            if (lost > 0) add_lost(about, load, found);
            put_slowest(about, found.finding);
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
