// Another thread of Python that computes: it holds the interpreter's lock, and the thread of the steps, which gives the
// lock away in each operator, waits behind them to have it back.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "model/settings.h"

namespace stepscope::diagnose::causes {
namespace {

// What Python takes from one operator to the next where it does not have to wait.
constexpr std::int64_t kUsualNs = 20'000;
// Whatever others do, of the time of operators that share cores with them.
constexpr double kLeastOfOperators = 0.5;

// The share of the recorded steps in which their thread had nothing of its own to do: it waited for a backward pass,
// for data, for other ranks.
double waits_for_others(const Case& about) {
  const simulate::StepWindow& window = about.now.window;
  if (window.lane == simulate::kNone || window.end_ns <= window.start_ns) return 0;
  const simulate::ReplayGraph& graph = about.predictor.graph();
  double own_ns = 0;
  for (const std::uint32_t node : graph.lanes[window.lane].nodes) {
    if (graph.start_ns[node] < window.start_ns || graph.start_ns[node] >= window.end_ns) continue;
    if (graph.role[node] == simulate::NodeRole::host) own_ns += static_cast<double>(graph.costs.cost_ns[node]);
  }
  return std::max(0.0, 1 - own_ns / static_cast<double>(window.end_ns - window.start_ns));
}

}  // namespace

Cause interpreter_lock_cause() {
  return {
      "interpreter_lock", "Another thread holds Python's lock", [](const Case& about, std::vector<Diagnosis>& out) {
        const ThreadsBeside beside = threads_beside(about.trace);
        if (beside.threads.empty()) return;
        const auto recorded_ns = static_cast<double>(beside.recorded_ns);
        double ran_ns = 0;
        for (const ThreadBeside& one : beside.threads) ran_ns += static_cast<double>(one.ran_ns);
        // Waited for the lock no longer than the others could hold it, and than it stood still for nothing else.
        const double stood = static_cast<double>(beside.stood_ns) / recorded_ns - waits_for_others(about);
        const double waits = std::min(ran_ns / recorded_ns, stood);
        if (waits <= 0) return;
        const double waits_ns = waits * static_cast<double>(about.path_ns);
        std::vector<std::uint32_t> between;
        double between_ns = 0;
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          if (work.trace != &about.trace || !work.between_operators() || work.cost_ns <= kUsualNs) return;
          if (about.on_path(node) == 0) return;
          between.push_back(node);
          between_ns += static_cast<double>(work.cost_ns - kUsualNs);
        });
        if (between.empty()) return;
        const double gone = std::min(1.0, waits_ns / between_ns);
        Gathered waiting(about);
        for (const std::uint32_t node : between) {
          const Work work = about.work(node);
          const auto longer = static_cast<double>(work.cost_ns - kUsualNs);
          // Some of it may be code of its own, that has the lock and stands still for something else.
          waiting.add_ns(node, work, "code between operators", work.cost_ns - static_cast<std::int64_t>(gone * longer),
                         work.cost_ns - static_cast<std::int64_t>(0.5 * gone * longer));
        }
        // Without a core of its own it also takes one from the threads of the operators.
        const auto cores = number_set(about.trace, "cores"), threads = number_set(about.trace, "torch_threads");
        if (cores && threads && *threads >= *cores) {
          const double runs = ran_ns / recorded_ns;
          for_each_work(about, [&](std::uint32_t node, const Work& work) {
            if (work.trace != &about.trace || work.device || work.operation == SliceId::none) return;
            waiting.add_along(node, std::max(kLeastOfOperators, 1 - runs), 1);
          });
        }
        if (about.share(static_cast<std::int64_t>(std::min(waits_ns, between_ns))) < kWorthSaying) return;
        const ThreadBeside& most =
            *std::max_element(beside.threads.begin(), beside.threads.end(),
                              [](const ThreadBeside& a, const ThreadBeside& b) { return a.ran_ns < b.ran_ns; });
        Diagnosis found = waiting.diagnosis(
            {.cause = "host",
             .sentence = fmt::format("Thread {} computes in Python beside the steps, which wait for the interpreter",
                                     most.name),
             .next = "Do its work in another process (workers of the DataLoader, multiprocessing), or once before the "
                     "loop: threads of Python take turns",
             .doubt = "how long each held the interpreter is inferred from how long it ran"});
        Finding& finding = found.finding;
        finding.where = {.rank = about.trace.rank.rank};
        if (!most.file.empty()) {
          finding.where.function = most.function;
          finding.where.file = most.file;
          finding.where.line = most.line > 0 ? most.line : most.function_line;
        }
        const auto share = [&](std::int64_t ns) { return static_cast<double>(ns) / recorded_ns; };
        finding.evidence.push_back({.text = "Of the time it ran", .value = share(most.ran_ns), .unit = Unit::ratio});
        finding.evidence.push_back({.text = "Of the time the thread of the steps stood still",
                                    .value = share(beside.stood_ns),
                                    .unit = Unit::ratio});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
