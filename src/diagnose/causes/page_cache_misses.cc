// Steps that wait for disks: what they or the workers of the data loader read is not in the page cache.
#include <algorithm>
#include <optional>
#include <vector>

#include "diagnose/code_between.h"
#include "diagnose/gathered.h"
#include "diagnose/loading.h"
#include "diagnose/queries.h"
#include "diagnose/reading.h"

namespace stepscope::diagnose::causes {

Cause page_cache_misses_cause() {
  return {
      "page_cache_misses", "Files that come from disk, step after step",
      [](const Case& about, std::vector<Diagnosis>& out) {
        const std::optional<Reading>& read = reading(about);
        if (!read) return;
        const std::int64_t waits_ns = waits_for_files_ns(about);
        if (waits_ns <= 0) return;
        // Of the waits the part in which some work stood still for a device, at most; all work did so at the least.
        const double waits = about.share(waits_ns);
        const double most_gone = std::min(1.0, read->some / waits), least_gone = std::min(1.0, read->all / waits);
        Gathered waiting(about);
        const Loading& load = loading(about);
        waiting.add(load.nodes, "the data loader", 1 - most_gone, 1 - least_gone);
        for (const BetweenOperators& one : about.shared<std::vector<BetweenOperators>>(code_between)) {
          if (one.doing == Doing::reading) {
            waiting.add(one.node, about.work(one.node), "reading files", 1 - most_gone, 1 - least_gone);
          }
        }
        if (!waiting.worth_saying() || about.share(waits_ns) * most_gone < kWorthSaying) return;
        Diagnosis found = waiting.diagnosis(
            {.cause = "io",
             .sentence = "Data come from disk in each step: they are not, or do not stay, in the page cache",
             .next = "Copy the data set to a local disk or to memory (/dev/shm) before the job, keep it smaller than "
                     "the free memory (smaller types, compression), read it in order and in large pieces, or let more "
                     "workers read ahead (num_workers, prefetch_factor)",
             .doubt = "which of the reads the step waited for is not recorded"});
        auto& evidence = found.finding.evidence;
        evidence.push_back({.text = "Read from disks per step",
                            .value = static_cast<std::int64_t>(std::min(1e18, read->bytes_per_step)),
                            .unit = Unit::bytes,
                            .query = samples_of("read_from_devices")});
        if (read->share) {
          evidence.push_back({.text = "Of all that was read", .value = *read->share, .unit = Unit::ratio});
        }
        evidence.push_back({.text = "Of the time something stood still for disks",
                            .value = read->some,
                            .unit = Unit::ratio,
                            .query = samples_of("io_pressure_some")});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
