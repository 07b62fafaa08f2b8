// Large tensors that are made anew in each step: their memory comes from the system each time, page by page.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/given_back.h"
#include "diagnose/let_go.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/queries.h"
#include "model/settings.h"
#include "model/telemetry.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::array<std::string_view, 13> kMakers{
    "aten::zeros",     "aten::ones",   "aten::full",      "aten::empty",     "aten::zeros_like",
    "aten::ones_like", "aten::arange", "aten::full_like", "aten::new_zeros", "aten::new_full",
    "aten::new_ones",  "aten::eye",    "aten::new_empty"};
// What is shorter is no large tensor.
constexpr std::int64_t kLongMakeNs = 100'000;
// What is let go and is as large as this makes glibc look what it can give back, not only of this tensor
// (FASTBIN_CONSOLIDATION_THRESHOLD of its malloc).
constexpr std::int64_t kGivesBackBytes = 64 << 10;

struct Stretch {
  std::uint32_t node = 0;
  Work work;
};

// Between operators a thread lets go of what it made for the step before. Memory goes back to the system then, or with
// something smaller that is let go later in the step, once what lies behind it is free.
void add_letting_go(const Case& about, const std::set<const Trace*>& makes, Gathered& to) {
  std::map<std::pair<const Trace*, TrackId>, std::vector<Stretch>> stretches;
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (!work.between_operators() || work.cost_ns < kLongMakeNs || !makes.contains(work.trace)) return;
    stretches[{work.trace, work.track}].push_back({node, work});
  });
  for (auto& [thread, all] : stretches) {
    std::sort(all.begin(), all.end(),
              [](const Stretch& a, const Stretch& b) { return a.work.start_ns < b.work.start_ns; });
    const std::vector<LetGo> times = let_go(*thread.first, thread.second, kGivesBackBytes);
    auto next = times.begin();
    std::vector<LetGo> held;  // let go, and not seen to go back
    for (const auto& [node, work] : all) {
      const std::int64_t end_ns = work.start_ns + work.cost_ns;
      bool goes_back = false;
      for (; next != times.end() && next->time_ns <= end_ns; ++next) {
        if (next->time_ns >= work.start_ns) goes_back = true;
        if (next->bytes >= kLargeBytes) held.push_back(*next);
      }
      if (!goes_back) continue;
      double bytes = 0;
      for (const LetGo& one : held) {
        const bool this_step = one.time_ns > end_ns - about.path_ns / about.steps;
        if (this_step) bytes += static_cast<double>(one.bytes);
      }
      held.clear();
      // No more of the stretch than that can take: the rest is other code.
      const auto cost = static_cast<double>(work.cost_ns);
      const double most_gone = std::min(cost, bytes / kLeastBytesPerNs),
                   least_gone = std::min(cost, bytes / kMostBytesPerNs);
      if (bytes > 0) {
        to.add_ns(node, work, "memory given back", static_cast<std::int64_t>(cost - most_gone),
                  static_cast<std::int64_t>(cost - least_gone));
      }
    }
  }
}

// What the kernel counted: pages that the process took anew in a step, recorded or not. nullopt: nobody counted.
std::optional<double> new_pages(const Case& about) {
  const Trace* history = marks_of_rank(about.run, about.trace.rank.rank);
  const auto recorded = page_faults_per_step(about.trace);
  const auto others = history == nullptr ? std::nullopt : usual_page_faults(*history, about.trace, about.steps);
  if (!recorded && !others) return std::nullopt;
  return std::max(recorded.value_or(0), others.value_or(0));
}

}  // namespace

Cause allocation_in_steps_cause() {
  return {
      "allocation_in_steps", "Large tensors made anew", [](const Case& about, std::vector<Diagnosis>& out) {
        const auto pages = new_pages(about);
        const bool is_kept = pages && *pages < kManyPageFaults;
        // Filling memory that is there already takes a third of that, not filling it nothing. Where the process keeps
        // its memory only what need not be filled is saved.
        const double most_left = is_kept ? 0.5 : 0.35;
        Gathered made(about);
        std::set<const Trace*> makes;
        const Passes& pass = passes(about);
        const bool fills = is_set(about.trace, "deterministic");  // which is debug_mode's
        for (const Operator& one : forward_operators(about)) {
          if (fills && is_without_values(one.name)) continue;
          if (std::find(kMakers.begin(), kMakers.end(), one.name) == kMakers.end()) continue;
          const std::vector<std::uint32_t>& nodes = pass.nodes(*one.trace, one.slice);
          std::int64_t time_ns = 0;
          for (const std::uint32_t node : nodes) time_ns += about.cost_ns(node);
          if (time_ns < kLongMakeNs) continue;
          made.add(nodes, one.name, 0, most_left);
          makes.insert(one.trace);
        }
        if (!is_kept) add_letting_go(about, makes, made);
        if (!made.worth_saying()) return;
        out.push_back(made.diagnosis(
            {.cause = "memory",
             .sentence = is_kept ? "Large tensors are made and filled anew in the steps"
                                 : "Large tensors are made anew in the steps, and their memory comes from the system "
                                   "each time",
             .next = is_kept
                         ? "Make them once before the loop and write into them: out=, copy_(); fill again only what is "
                           "read before it is written"
                         : "Make them once before the loop and write into them: out=, copy_(), zero_()",
             .doubt = is_kept ? "how much of them has to be filled is not known"
                      : pages ? "that the new pages are theirs is inferred"
                              : "that the memory is new each time is inferred from how long filling it takes"}));
        if (pages && !is_kept) {
          out.back().finding.evidence.push_back({.text = "Pages of new memory in a step",
                                                 .value = static_cast<std::int64_t>(std::llround(*pages)),
                                                 .unit = Unit::count});
          if (page_faults_per_step(about.trace) == pages)
            out.back().finding.evidence.back().query = setting_of("page_faults");
        }
      }};
}

}  // namespace stepscope::diagnose::causes
