// A rank that the others wait for although it does what they do: its machine is slower, by its clock, by heat, or since
// others work there.
#include <algorithm>
#include <string>
#include <vector>

#include "diagnose/gathered.h"
#include "diagnose/sampled.h"
#include "diagnose/stragglers.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr double kSameData = 0.02;  // more or less of it

// What was sampled of the rank's machine that holds it back, in a few words; empty: nothing.
std::string held_back_by(const Case& about, std::int64_t rank) {
  const auto rate = [&](std::string_view name) { return rate_in_steps(about.run, rank, name).value_or(0); };
  if (rate("main_thread_wait") > 0.02) return "its main thread waits for a core that others use";
  const auto machine = [&](std::string_view name) { return rate_on_machine(about.run, rank, name).value_or(0); };
  if (machine("cpu_throttled_time") > 0.02) return "the quota of its cgroup stops it";
  if (machine("cpu_steal") > 0.02) return "the host of its virtual machine gives its cores to others";
  return {};
}

}  // namespace

Cause straggler_hardware_cause() {
  return {
      "straggler_hardware", "A rank on a slower machine", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::optional<Straggler>& late = straggler(about);
        if (!late || !late->more_data || std::abs(*late->more_data - 1) > kSameData) return;
        const std::int64_t operators_ns = late->own_ns - late->code_ns,
                           others_ns = late->others_ns - late->others_code_ns;
        const std::int64_t more_ns = operators_ns - others_ns;
        // Most of what it takes longer is in the same operators on as much data.
        if (2 * more_ns < late->own_ns - late->others_ns || about.share(more_ns) < kWorthSaying) return;
        const double left = static_cast<double>(others_ns) / static_cast<double>(operators_ns);
        Gathered slower(about);
        for (const std::uint32_t node : late->operators) {
          const Work work = about.work(node);
          slower.add(node, work, work.name(), left, left);
        }
        if (!slower.worth_saying()) return;
        const std::string held = held_back_by(about, late->trace->rank.rank);
        Diagnosis found = slower.diagnosis(
            {.cause = "imbalance",
             .sentence = "The other ranks wait for this one, whose operators take longer on as much data" +
                         (held.empty() ? "" : ": " + held),
             .next = "Look at its machine: stepscope report PATH --only system (clocks, heat, other processes, quota); "
                     "pin ranks to cores of their own, or leave that machine out",
             .doubt = held.empty() ? "what holds it back was not sampled" : ""});
        // It is the rank that is slow, and no line of it.
        found.finding.where = {.rank = late->trace->rank.rank, .t_ns = found.finding.where.t_ns};
        found.finding.evidence.push_back({.text = "Its operators, over those of the others", .value = 1 / left});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
