// Memory that goes back to the system in each step and comes anew, page by page: what the C library gives back once it
// is free at the end of its heap, and at once where a block is large.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/given_back.h"
#include "diagnose/passes.h"
#include "diagnose/queries.h"
#include "model/settings.h"
#include "model/taken_memory.h"
#include "model/telemetry.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::string_view kReturned = "Memory goes back to the system in each step and comes anew, page by page";
constexpr std::string_view kReturnedInRecorded =
    "Where it was recorded, memory came anew from the system in each step; what a recording leaves behind it may have "
    "kept it since";
constexpr std::string_view kRecordLater =
    "; recorded later (--steps 100:105), the steps before tell what that is worth";
// What one page takes where nobody measured it, on the machine itself and in a virtual one.
constexpr double kQuickPageNs = 250, kSlowPageNs = 1'500;
// Threads of an operator wait for pages side by side, or for one another; and a virtual machine's host may have to find
// the page first, which was measured where it had it.
constexpr double kLeastOfPage = 0.6, kMostOfPage = 1.3;
// Of an operator so much is its own in any case; and less than that is none of this.
constexpr double kOwnPart = 0.1, kTelling = 0.1;

// Pages that come anew in a step, and who takes the memory.
struct Anew {
  double pages = 0;
  bool is_usual = false;            // else of recorded steps alone
  double part = 0;                  // of the bytes that operators take
  double freed = 0;                 // bytes that a step lets go of
  std::map<SliceId, double> bytes;  // that an outermost operator takes, in all recorded steps
};

// As often as the kernel counted. What recorded steps have more of than usual ones is none of those that gains are of;
// what they have less of is not in what was recorded of their operators.
Anew counted(const Case& about, const Trace& trace) {
  const auto own = page_faults_per_step(trace);
  const Trace* marks = marks_of_rank(about.run, trace.rank.rank);
  const auto usual = marks == nullptr ? own : usual_page_faults(*marks, trace, about.steps);
  if (!own || !usual) return {};
  const double both = std::min(*own, *usual);
  if (both >= kManyPageFaults) return {.pages = both, .is_usual = true};
  // Steps before that had none are no reason to think that the job has.
  const auto around = marks == nullptr ? std::nullopt : faults_around_recording(*marks, trace, about.steps);
  return around && !around->is_recorded ? Anew{} : Anew{.pages = *own};
}

// Without those by which the process grows. nullopt: they are few, or nothing is recorded that takes memory.
std::optional<Anew> comes_anew(const Case& about, const Trace& trace) {
  Anew out = counted(about, trace);
  if (out.pages < kManyPageFaults) return std::nullopt;
  const auto steps = static_cast<double>(about.steps);
  double grown = 0, freed = 0;
  for (std::size_t row = 0; row < trace.memory.size(); row++) {
    if (trace.memory.device_type[row] != 0 || !trace.memory.bytes.has(row)) continue;
    const auto bytes = static_cast<double>(trace.memory.bytes[row]);
    grown += bytes;
    if (bytes < 0) freed -= bytes;
  }
  out.bytes = taken_from_system(trace);
  double taken = 0;
  for (const auto& [by, bytes] : out.bytes) taken += bytes;
  out.freed = freed / steps;
  const double page = page_bytes(trace);
  const double back = std::min(out.pages - std::max(0.0, grown) / page / steps, out.freed / page);
  if (!(back >= kManyPageFaults) || taken <= 0) return std::nullopt;
  out.part = std::min(1.0, back * page * steps / taken);
  // What a recorder takes meanwhile makes the job take other memory for some of its own.
  constexpr double kNearlyAll = 0.8;
  if (!out.is_usual && out.part < kNearlyAll) return std::nullopt;
  return out;
}

struct PageNs {
  std::int64_t measured = 0;  // 0: nobody did so on that machine
  double quick = kQuickPageNs, slow = kSlowPageNs;
};

PageNs times_of_page(const Trace& trace) {
  const std::int64_t measured = page_ns(trace).value_or(0);
  if (measured == 0) return {};
  return {.measured = measured,
          .quick = kLeastOfPage * static_cast<double>(measured),
          .slow = kMostOfPage * static_cast<double>(measured)};
}

// Batches of a loader's workers come through memory that they share, which no setting keeps.
bool has_workers(const Trace& trace) { return loader_busy(trace).has_value() || batches_ready(trace).has_value(); }

void add_takers(const Case& about, const Trace& trace, const Anew& anew, Gathered& to) {
  const PageNs page = times_of_page(trace);
  for (const auto& [operation, bytes] : anew.bytes) {
    const std::vector<std::uint32_t>& nodes = passes(about).nodes(trace, operation);
    double cost_ns = 0;
    for (const std::uint32_t node : nodes) cost_ns += static_cast<double>(about.cost_ns(node));
    if (cost_ns <= 0) continue;
    const double pages = bytes * anew.part / page_bytes(trace);
    const double most = std::min(1 - kOwnPart, pages * page.slow / cost_ns);
    const double least = has_workers(trace) ? 0 : std::min(1 - kOwnPart, pages * page.quick / cost_ns);
    if (most >= kTelling) to.add(nodes, trace.name(operation), 1 - most, 1 - least);
  }
}

// More than any step lets go of at the end of the heap.
std::string keep_it(double freed) {
  double kept = 1 << 30;
  while (kept < 2 * freed && kept < 1e15) kept *= 2;
  return fmt::format(
      "Let the process keep it: MALLOC_TRIM_THRESHOLD_={:.0f} MALLOC_MMAP_MAX_=0 before python (glibc), or "
      "LD_PRELOAD=libjemalloc.so.2; it then holds what its largest step needs, or somewhat more",
      kept);
}

void find_returned(const Case& about, std::vector<Diagnosis>& out) {
  if (about.has_device()) return;
  std::map<const Trace*, Anew> anew;
  for (const Trace& trace : timelines(about.run)) {
    if (auto found = comes_anew(about, trace)) anew.emplace(&trace, std::move(*found));
  }
  const bool is_usual = std::any_of(anew.begin(), anew.end(), [](const auto& one) { return one.second.is_usual; });
  std::erase_if(anew, [&](const auto& one) { return one.second.is_usual != is_usual; });
  if (anew.empty()) return;
  Gathered takers(about);
  for (const auto& [trace, of] : anew) add_takers(about, *trace, of, takers);
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    const auto of = anew.find(work.trace);
    if (of == anew.end() || !work.between_operators()) return;
    const auto cost = static_cast<double>(work.cost_ns);
    const double bytes = of->second.part * static_cast<double>(given_back(about).bytes(node));
    if (cost <= 0 || bytes < kTelling * cost * kLeastBytesPerNs) return;
    const double least = has_workers(*work.trace) ? 0 : std::min(1 - kOwnPart, bytes / kMostBytesPerNs / cost);
    takers.add_along(node, 1 - std::min(1 - kOwnPart, bytes / kLeastBytesPerNs / cost), 1 - least);
  });
  if (!takers.worth_saying()) return;
  const std::int64_t measured = page_ns(about.trace).value_or(0);
  double pages = 0, freed = 0;
  for (const auto& [trace, of] : anew) pages = std::max(pages, of.pages), freed = std::max(freed, of.freed);
  Diagnosis found =
      takers.diagnosis({.cause = "memory",
                        .sentence = std::string(is_usual ? kReturned : kReturnedInRecorded),
                        .next = keep_it(freed) + std::string(is_usual ? "" : kRecordLater),
                        .doubt = !is_usual      ? "whether it does so while nobody records is not known"
                                 : measured > 0 ? "that the pages are theirs, and not of mapped files, is inferred"
                                                : "what a page takes on that machine was not measured"});
  std::vector<Evidence>& evidence = found.finding.evidence;
  if (!is_usual) {  // the steps that gains are of have none of it
    found.rewrite = {};
    found.explains.clear();
    evidence.clear();
  }
  evidence.push_back({.text = is_usual ? "Pages of new memory in a step" : "Pages of new memory in a recorded step",
                      .value = static_cast<std::int64_t>(std::llround(pages)),
                      .unit = Unit::count});
  if (page_faults_per_step(about.trace) == pages) evidence.back().query = setting_of("page_faults");
  if (measured > 0) {
    evidence.push_back(
        {.text = "A page takes here", .value = measured, .unit = Unit::ns, .query = setting_of("page_ns")});
  }
  found.is_general = true;  // of whatever takes memory
  out.push_back(std::move(found));
}

}  // namespace

Cause memory_returned_cause() {
  return {"memory_returned", "Memory that goes back to the system in each step", find_returned};
}

}  // namespace stepscope::diagnose::causes
