// Workers of a data loader that do not keep up, where more of them would have no core.
#include <string>
#include <utility>

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

}  // namespace

Cause loader_slow_workers_cause() {
  return {"loader_slow_workers", "Slow workers of the data loader", [](const Case& about, std::vector<Diagnosis>& out) {
            const Loading& load = loading(about);
            if (load.where != LoadsIn::workers || about.share(load.time_ns) < kWorthSaying) return;
            if (has_room(load) || keeps_up(load) || waits_for_disks(about)) return;  // else that is the cause
            Diagnosis found =
                waits_for_loader(about, load, "The workers of the data loader do not keep up",
                                 "Make __getitem__ and collate_fn cheaper, or prepare the data before; more workers "
                                 "would help only with cores of their own",
                                 0, 0.1);
            put_slowest(about, found.finding);
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
