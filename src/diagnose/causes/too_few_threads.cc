// Operators on fewer threads than the job has cores, which are idle meanwhile.
#include <algorithm>
#include <cmath>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/local_ranks.h"
#include "diagnose/queries.h"
#include "diagnose/sampled.h"
#include "model/settings.h"
#include "model/telemetry.h"

namespace stepscope::diagnose::causes {

Cause too_few_threads_cause() {
  return {
      "too_few_threads", "Idle cores beside operators of few threads",
      [](const Case& about, std::vector<Diagnosis>& out) {
        const auto threads = number_set(about.trace, "torch_threads"), cores = number_set(about.trace, "cores");
        const auto idle = idle_cores(about.run);
        constexpr std::int64_t kMost = 1 << 20;  // settings of a file, which may hold anything
        if (!threads || !cores || !idle || *threads < 1 || *threads > kMost || *idle > kMost || *cores > kMost) return;
        // Ranks that wait for each other leave cores idle, which the others of them use in turn.
        const std::int64_t ranks = ranks_on_cores(about);
        const std::int64_t usable = std::min<std::int64_t>(*cores / ranks, *threads + std::llround(*idle));
        if (usable <= *threads) return;
        // Work is parted where it is large; some of it, and every call, stays on one thread.
        constexpr std::int64_t kPartedNs = 100'000;
        // What the cores give side by side was measured where torch has one thread (hooks: torch_settings.py).
        double faster = static_cast<double>(usable) / static_cast<double>(*threads);
        const auto measured = ratio_set(about.trace, "cores_speed_permille");
        if (measured && *measured > 0) faster = std::min(faster, *measured);
        if (faster <= 1) return;
        const double least = 1 / faster, most = 0.5 * (1 + least);
        Gathered operators(about);
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (work.device || work.operation == SliceId::none || work.cost_ns < kPartedNs) return;
          if (work.role != simulate::NodeRole::host) return;
          if (work.trace->device.size() > 0) return;  // of a job on a device operators only launch
          operators.add(node, work, work.name(), least, most);
        });
        if (!operators.worth_saying()) return;
        Diagnosis found = operators.diagnosis(
            {.cause = "cpu",
             .sentence = "Operators run on fewer threads than the job has cores, and the others are idle",
             .next = "Let torch use them: leave OMP_NUM_THREADS and torch.set_num_threads out, or set them to the "
                     "cores of the rank (torchrun sets OMP_NUM_THREADS=1)",
             .doubt = "how well operators divide among threads differs: the gain is between none of it and all",
             .called = "set_num_threads"});
        found.finding.evidence.push_back(
            {.text = "Threads of torch", .value = *threads, .unit = Unit::count, .query = setting_of("torch_threads")});
        found.finding.evidence.push_back(
            {.text = "Cores of the job", .value = *cores, .unit = Unit::count, .query = setting_of("cores")});
        found.finding.evidence.push_back(
            {.text = "Idle cores of the machine", .value = *idle, .query = samples_of("cpu_idle")});
        if (measured)
          found.finding.evidence.push_back({.text = "Times as fast all cores are here",
                                            .value = *measured,
                                            .query = setting_of("cores_speed_permille")});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
