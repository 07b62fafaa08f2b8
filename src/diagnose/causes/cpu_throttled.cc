// Cores that the job may not use for as long as it would: the kernel stops its threads when the quota is used up.
#include <algorithm>

#include "diagnose/gathered.h"
#include "diagnose/queries.h"
#include "diagnose/sampled.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {

Cause cpu_throttled_cause() {
  return {
      "cpu_throttled", "Threads stopped by the quota of the cgroup",
      [](const Case& about, std::vector<Diagnosis>& out) {
        const auto stopped = rate_on_machine(about.run, about.trace.rank.rank, "cpu_throttled_time");
        if (!stopped || *stopped < kWorthSaying) return;
        // The time is summed over the cores' run queues: at least one of them stood still for that long, at most all
        // did at once.
        const double cores =
            static_cast<double>(std::max<std::int64_t>(1, number_set(about.trace, "torch_threads").value_or(1)));
        const double most_lost = std::min(0.9, *stopped), least_lost = std::min(0.9, *stopped / cores);
        Gathered work_of(about);
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (work.device || work.role != simulate::NodeRole::host || work.trace != &about.trace) return;
          work_of.add(node, work, work.operation == SliceId::none ? "code between operators" : work.name(),
                      1 - most_lost, 1 - least_lost);
        });
        if (!work_of.worth_saying()) return;
        Diagnosis found = work_of.diagnosis(
            {.cause = "cpu",
             .sentence = "The kernel stops the job's threads: the quota of processor time of its cgroup is used up",
             .next = "Ask for more processor time (--cpus of a container, limits.cpu of a pod, --cpus-per-task), or "
                     "use fewer threads and workers than the quota has cores",
             .doubt = "it is known how long threads were stopped, and not which"});
        found.finding.where = {.rank = about.trace.rank.rank};
        found.finding.evidence.push_back(
            {.text = "Cores that stood still for it", .value = *stopped, .query = samples_of("cpu_throttled_time")});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
