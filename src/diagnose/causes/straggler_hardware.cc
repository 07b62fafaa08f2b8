// A rank that the others wait for although it does what they do: its machine is slower, by its clock, by heat, or since
// others work there.
#include <algorithm>
#include <string>
#include <vector>

#include "diagnose/gathered.h"
#include "diagnose/sampled.h"
#include "diagnose/stragglers.h"
#include "model/answer_parts.h"
#include "model/own_time.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr double kSameData = 0.02;  // more or less of it
constexpr double kHeldBack = 0.02;  // of the time

// What was sampled of the rank's machine, or of its device, that holds it back, in a few words; empty: nothing.
std::string held_back_by(const Case& about, const Straggler& late) {
  const std::int64_t rank = late.trace->rank.rank;
  if (late.on_device) {
    // Of what holds the others' devices back as well it is no reason.
    const auto share = [&](std::string_view name) {
      std::vector<double> others;
      for (const Trace& trace : about.run.traces) {
        if (trace.rank.rank == rank) continue;
        if (const auto level = level_of_device(about.run, trace.rank.rank, name)) others.push_back(*level);
      }
      std::sort(others.begin(), others.end());
      return level_of_device(about.run, rank, name).value_or(0) - quantile(others, 0.5).value_or(0);
    };
    if (share("gpu_limited_by_heat") > kHeldBack) return "heat holds its clock down";
    if (share("gpu_limited_by_power") > kHeldBack) return "its limit of power holds its clock down";
    if (share("gpu_limited_by_hardware") > kHeldBack) return "the hardware holds its clock down";
    if (share("gpu_limited_by_setting") > kHeldBack) return "a setting holds its clock down";
    return {};
  }
  const auto rate = [&](std::string_view name) { return rate_in_steps(about.run, rank, name).value_or(0); };
  if (rate("main_thread_wait") > kHeldBack) return "its main thread waits for a core that others use";
  const auto machine = [&](std::string_view name) { return rate_on_machine(about.run, rank, name).value_or(0); };
  if (machine("cpu_throttled_time") > kHeldBack) return "the quota of its cgroup stops it";
  if (machine("cpu_steal") > kHeldBack) return "the host of its virtual machine gives its cores to others";
  return {};
}

// A machine that is slow is so for the whole job. In a few steps a rank may have been held back by chance: its forward
// passes, in which nobody waits for others, would be no longer than theirs in all that is marked.
bool is_slow_by_chance(const Case& about, const Straggler& late, double recorded) {
  constexpr double kLeast = 0.5;  // of what the recorded steps show
  const auto ratio = usual_forward_ratio(about.run, late.trace->rank.rank);
  return ratio && *ratio - 1 < kLeast * (recorded - 1);
}

std::string doubt_of(const Straggler& late, bool seen) {
  if (!late.more_data) return "whether its batches are larger was not recorded (record_shapes)";
  return seen ? "" : "what holds it back was not sampled";
}

void find_slower_machine(const Case& about, const Straggler& late, std::vector<Diagnosis>& out) {
  if (!late.steady) return;  // no machine is slow now and then for one rank alone
  // Without sizes a rank with more to do looks alike: on a host that is usual.
  if (late.more_data ? std::abs(*late.more_data - 1) > kSameData : !late.on_device) return;
  const std::int64_t operators_ns = late.own_ns - late.code_ns, others_ns = late.others_ns - late.others_code_ns;
  const std::int64_t more_ns = operators_ns - others_ns;
  // Most of what it takes longer is in the same operators on as much data.
  if (2 * more_ns < late.own_ns - late.others_ns || about.share(more_ns) < kWorthSaying) return;
  const double left = static_cast<double>(others_ns) / static_cast<double>(operators_ns);
  if (!late.on_device && is_slow_by_chance(about, late, 1 / left)) return;
  Gathered slower(about);
  for (const std::uint32_t node : late.operators) {
    const Work work = about.work(node);
    slower.add(node, work, work.name(), left, left);
  }
  if (!slower.worth_saying()) return;
  const std::string held = held_back_by(about, late);
  const std::string_view work = late.on_device ? "kernels" : "operators";
  Diagnosis found = slower.diagnosis(
      {.cause = "imbalance",
       .sentence = "The other ranks wait for this one, whose " + std::string(work) + " take longer" +
                   (late.more_data ? " on as much data" : "") + (held.empty() ? "" : ": " + held),
       .next =
           late.on_device
               ? "Look at its device: stepscope report PATH --only system (clocks, heat, limits of power, ECC), and "
                 "nvidia-smi -q -d PERFORMANCE there; leave that machine out if it stays slow"
               : "Look at its machine: stepscope report PATH --only system (clocks, heat, other processes, quota); "
                 "pin ranks to cores of their own, or leave that machine out",
       .doubt = doubt_of(late, !held.empty())});
  // It is the rank that is slow, and no line of it.
  found.finding.where = {.rank = late.trace->rank.rank, .t_ns = found.finding.where.t_ns};
  found.finding.evidence.push_back(
      {.text = "Its " + std::string(work) + ", over those of the others", .value = 1 / left});
  out.push_back(std::move(found));
}

}  // namespace

Cause straggler_hardware_cause() {
  return {"straggler_hardware", "A rank on a slower machine", [](const Case& about, std::vector<Diagnosis>& out) {
            for (const Straggler& late : stragglers(about)) find_slower_machine(about, late, out);
          }};
}

}  // namespace stepscope::diagnose::causes
