// More threads than cores: operators wait at the end of each piece of work for the thread that had no core.
#include <algorithm>
#include <optional>
#include <string_view>

#include "costs/traffic.h"
#include "diagnose/cause.h"
#include "diagnose/fastest_products.h"
#include "diagnose/gathered.h"
#include "diagnose/local_ranks.h"
#include "diagnose/queries.h"
#include "diagnose/sampled.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {

namespace {

// Of some kinds torch gives each piece to one thread, or all of it.
bool may_stay_on_one_thread(std::string_view op) {
  const costs::TrafficModel* model = costs::traffic_of(op);
  if (model == nullptr) return true;
  return model->family == costs::Family::indexing || model->family == costs::Family::embedding ||
         model->family == costs::Family::sorting;
}

}  // namespace

Cause too_many_threads_cause() {
  return {
      "too_many_threads", "More threads than cores", [](const Case& about, std::vector<Diagnosis>& out) {
        const auto threads = number_set(about.trace, "torch_threads"), cores = number_set(about.trace, "cores");
        if (!threads || !cores) return;
        constexpr std::int64_t kMost = 1 << 20;  // settings of a file, which may hold anything
        const std::int64_t ranks = ranks_on_cores(about);
        if (*threads < 1 || *cores < 1 || *threads > kMost || *cores > kMost) return;
        const std::int64_t all = *threads * ranks;
        if (all <= *cores) return;
        const auto wait = rate_in_steps(about.run, about.trace.rank.rank, "main_thread_wait");
        // What the main thread waits for a core the others wait as well, at least; with `all` threads of equal
        // right on the cores, one that waits for the last has lost up to the share that found no core.
        const double lost = std::min(0.9, wait.value_or(0));
        const double crowd = 1 - static_cast<double>(*cores) / static_cast<double>(all);
        // What calling all these threads costs was measured (hooks: torch_settings.py); a product calls them more often
        // than once.
        const auto call_ns = number_set(about.trace, "crowd_call_ns");
        constexpr double kCalls = 2, kLeastOwn = 0.2;
        constexpr double kOtherShapes = 4;          // as often as fast the fastest product is as others, at most
        constexpr std::int64_t kPartedNs = 30'000;  // shorter ones stay on one thread
        std::optional<FastestProducts> fastest;
        if (call_ns && *call_ns > 0 && !about.has_device()) fastest.emplace(about);
        Gathered operators(about);
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (work.device || work.operation == SliceId::none || work.cost_ns < kPartedNs) return;
          if (work.role != simulate::NodeRole::host) return;
          if (work.trace->device.size() > 0) return;  // of a job on a device operators only launch
          if (!call_ns || *call_ns <= 0) {
            operators.add(node, work, work.name(), std::min(1 - lost, 1 - crowd / 2), 1 - lost);
            return;
          }
          if (work.cost_ns < *call_ns) return;  // it was done by one thread
          const auto cost = static_cast<double>(work.cost_ns), called = static_cast<double>(*call_ns);
          // Threads that are done wait busily for the others, and so keep the main thread from a core.
          double least = std::max(kLeastOwn, 1 - lost - kCalls * called / cost),
                 most = std::max(kLeastOwn, 1 - std::max(lost, called / cost));
          // Also what one thread does waits for a core that threads of the operator before still hold.
          if (may_stay_on_one_thread(work.name())) most = std::max(kLeastOwn, 1 - lost);
          // A library's product whose result is small parts its sums, and waits for all threads many times.
          if (const auto left = fastest ? fastest->of_product(work) : std::nullopt) {
            least = std::min(least, *left), most = std::min(most, kOtherShapes * *left);
          }
          operators.add(node, work, work.name(), least, most);
        });
        if (!operators.worth_saying()) return;
        Diagnosis found = operators.diagnosis(
            {.cause = "cpu",
             .sentence = "More threads work than there are cores: operators wait for threads that wait for a core",
             .next = "Set OMP_NUM_THREADS, or torch.set_num_threads(), to the cores of the job divided by its ranks "
                     "on this machine",
             .doubt = wait && *wait > 0.05 ? "" : "that threads waited for a core was not sampled",
             .called = "set_num_threads"});
        found.finding.evidence.push_back({.text = "Threads of all ranks here",
                                          .value = all,
                                          .unit = Unit::count,
                                          .query = setting_of("torch_threads")});
        found.finding.evidence.push_back(
            {.text = "Cores of the job", .value = *cores, .unit = Unit::count, .query = setting_of("cores")});
        if (wait) {
          found.finding.evidence.push_back({.text = "Of its time the main thread had no core",
                                            .value = *wait,
                                            .unit = Unit::ratio,
                                            .query = samples_of("main_thread_wait")});
        }
        if (call_ns && *call_ns > 0) {
          found.finding.evidence.push_back({.text = "Calling all of them, for each operator",
                                            .value = *call_ns,
                                            .unit = Unit::ns,
                                            .query = setting_of("crowd_call_ns")});
        }
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
