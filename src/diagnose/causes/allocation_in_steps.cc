// Large tensors that are made anew in each step: their memory comes from the system each time, page by page.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::array<std::string_view, 13> kMakers{
    "aten::zeros",     "aten::ones",   "aten::full",      "aten::empty",     "aten::zeros_like",
    "aten::ones_like", "aten::arange", "aten::full_like", "aten::new_zeros", "aten::new_full",
    "aten::new_ones",  "aten::eye",    "aten::new_empty"};
// What is shorter is no large tensor.
constexpr std::int64_t kLongMakeNs = 100'000;
constexpr std::int64_t kLargeBytes = 1 << 20;  // of memory that goes back to the system when a tensor is let go

// Giving memory back takes a while for each page of it; as often as fast or as slow.
constexpr double kLeastBytesPerNs = 10, kMostBytesPerNs = 40;

// Large pieces of memory that a rank's host gives back, with when, clock of its file.
std::vector<std::pair<std::int64_t, std::int64_t>> given_back(const Trace& trace) {
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  for (std::size_t row = 0; row < trace.memory.size(); row++) {
    if (trace.memory.device_type[row] != 0 || !trace.memory.bytes.has(row)) continue;
    if (trace.memory.bytes[row] <= -kLargeBytes)
      times.emplace_back(trace.memory.time_ns[row], -trace.memory.bytes[row]);
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Between operators a thread lets go of what it made for the step before.
void add_letting_go(const Case& about, const std::set<const Trace*>& makes, Gathered& to) {
  std::map<const Trace*, std::vector<std::pair<std::int64_t, std::int64_t>>> times;
  for (const Trace* trace : makes) times[trace] = given_back(*trace);
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (!work.between_operators() || work.cost_ns < kLongMakeNs || !makes.contains(work.trace)) return;
    const auto& all = times[work.trace];
    double bytes = 0;
    for (auto at = std::lower_bound(all.begin(), all.end(), std::pair(work.start_ns, std::int64_t{0}));
         at != all.end() && at->first <= work.start_ns + work.cost_ns; ++at) {
      bytes += static_cast<double>(at->second);
    }
    // No more of the stretch than that can take: the rest is other code.
    const auto cost = static_cast<double>(work.cost_ns);
    const double most_gone = std::min(cost, bytes / kLeastBytesPerNs),
                 least_gone = std::min(cost, bytes / kMostBytesPerNs);
    if (bytes > 0) {
      to.add_ns(node, work, "memory given back", static_cast<std::int64_t>(cost - most_gone),
                static_cast<std::int64_t>(cost - least_gone));
    }
  });
}

}  // namespace

Cause allocation_in_steps_cause() {
  return {
      "allocation_in_steps", "Large tensors made anew", [](const Case& about, std::vector<Diagnosis>& out) {
        Gathered made(about);
        std::set<const Trace*> makes;
        const Passes& pass = passes(about);
        for (const Operator& one : forward_operators(about)) {
          if (std::find(kMakers.begin(), kMakers.end(), one.name) == kMakers.end()) continue;
          const std::vector<std::uint32_t>& nodes = pass.nodes(*one.trace, one.slice);
          std::int64_t time_ns = 0;
          for (const std::uint32_t node : nodes) time_ns += about.cost_ns(node);
          if (time_ns < kLongMakeNs) continue;
          // Filling memory that is there already takes a third of that, not filling it nothing.
          made.add(nodes, one.name, 0, 0.35);
          makes.insert(one.trace);
        }
        add_letting_go(about, makes, made);
        if (!made.worth_saying()) return;
        out.push_back(made.diagnosis(
            {.cause = "memory",
             .sentence = "Large tensors are made anew in the steps, and their memory comes from the system each time",
             .next = "Make them once before the loop and write into them: out=, copy_(), zero_()",
             .doubt = "that the memory is new each time is inferred from how long filling it takes"}));
      }};
}

}  // namespace stepscope::diagnose::causes
