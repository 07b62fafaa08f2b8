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

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/given_back.h"
#include "diagnose/passes.h"
#include "diagnose/queries.h"
#include "model/lookup.h"
#include "model/settings.h"
#include "model/telemetry.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::string_view kReturned = "Memory goes back to the system in each step and comes anew, page by page";
constexpr std::string_view kReturnedInRecorded =
    "Where it was recorded, memory came anew from the system in each step; what a recording leaves behind it may have "
    "kept it since";
constexpr std::string_view kKeepIt =
    "Let the process keep it: MALLOC_TRIM_THRESHOLD_=1073741824 MALLOC_MMAP_MAX_=0 before python (glibc), or "
    "LD_PRELOAD=libjemalloc.so.2; it then holds what its largest step needs, or somewhat more";
constexpr std::string_view kRecordLater =
    "; recorded later (--steps 100:105), the steps before tell what that is worth";
constexpr double kPageBytes = 4096;
// Less is cut from what the process has.
constexpr std::int64_t kFromSystemBytes = 128 << 10;
// What one page takes where nobody measured it, on the machine itself and in a virtual one.
constexpr double kQuickPageNs = 250, kSlowPageNs = 1'500;
constexpr std::int64_t kMostPageNs = 50'000;  // settings of a file, which may hold anything
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
  std::map<SliceId, double> bytes;  // that an outermost operator takes, in all recorded steps
};

// As often as the kernel counted, in the steps that gains are of.
Anew counted(const Case& about, const Trace& trace) {
  const auto own = page_faults_per_step(trace);
  const Trace* marks = marks_of_rank(about.run, trace.rank.rank);
  auto usual = marks == nullptr ? own : usual_page_faults(*marks, about.steps);
  // Only of a rank alone are recorded steps made as long as the others, with the pages that they had less.
  if (usual && own && about.run.traces.size() > 1) usual = std::min(*usual, *own);
  if (usual.value_or(0) >= kManyPageFaults) return {.pages = *usual, .is_usual = true};
  return {.pages = usual ? own.value_or(0) : 0};
}

// No more than what the process lets go of in a step goes back: by the others it grows. nullopt: they are few, or
// nothing is recorded that takes memory.
std::optional<Anew> comes_anew(const Case& about, const Trace& trace) {
  Anew out = counted(about, trace);
  if (out.pages < kManyPageFaults) return std::nullopt;
  double taken = 0, freed = 0;
  for (std::size_t row = 0; row < trace.memory.size(); row++) {
    if (trace.memory.device_type[row] != 0 || !trace.memory.bytes.has(row)) continue;
    const std::int64_t bytes = trace.memory.bytes[row];
    if (bytes < 0) freed -= static_cast<double>(bytes);
    if (bytes < kFromSystemBytes) continue;
    const SliceId by = about.outermost(trace, slice_at(trace, trace.memory.track[row], trace.memory.time_ns[row]));
    if (by == SliceId::none) continue;
    out.bytes[by] += static_cast<double>(bytes);
    taken += static_cast<double>(bytes);
  }
  const auto steps = static_cast<double>(about.steps);
  const double most = freed / kPageBytes / steps;
  if (most < kManyPageFaults || taken <= 0) return std::nullopt;
  out.part = std::min(1.0, std::min(out.pages, most) * kPageBytes * steps / taken);
  return out;
}

struct PageNs {
  std::int64_t measured = 0;  // 0: nobody did so on that machine
  double quick = kQuickPageNs, slow = kSlowPageNs;
};

PageNs page_ns(const Trace& trace) {
  const std::int64_t measured = number_set(trace, "page_ns").value_or(0);
  if (measured <= 0 || measured > kMostPageNs) return {};
  return {.measured = measured,
          .quick = kLeastOfPage * static_cast<double>(measured),
          .slow = kMostOfPage * static_cast<double>(measured)};
}

// Batches of a loader's workers come through memory that they share, which no setting keeps.
bool has_workers(const Trace& trace) { return loader_busy(trace).has_value() || batches_ready(trace).has_value(); }

void add_takers(const Case& about, const Trace& trace, const Anew& anew, Gathered& to) {
  const PageNs page = page_ns(trace);
  for (const auto& [operation, bytes] : anew.bytes) {
    const std::vector<std::uint32_t>& nodes = passes(about).nodes(trace, operation);
    double cost_ns = 0;
    for (const std::uint32_t node : nodes) cost_ns += static_cast<double>(about.cost_ns(node));
    if (cost_ns <= 0) continue;
    const double pages = bytes * anew.part / kPageBytes;
    const double most = std::min(1 - kOwnPart, pages * page.slow / cost_ns);
    const double least = has_workers(trace) ? 0 : std::min(1 - kOwnPart, pages * page.quick / cost_ns);
    if (most >= kTelling) to.add(nodes, trace.name(operation), 1 - most, 1 - least);
  }
}

void find_returned(const Case& about, std::vector<Diagnosis>& out) {
  if (about.has_device()) return;
  std::map<const Trace*, Anew> anew;
  for (const Trace& trace : about.run.traces) {
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
  const std::int64_t measured = page_ns(about.trace).measured;
  Diagnosis found =
      takers.diagnosis({.cause = "memory",
                        .sentence = std::string(is_usual ? kReturned : kReturnedInRecorded),
                        .next = std::string(kKeepIt) + std::string(is_usual ? "" : kRecordLater),
                        .doubt = !is_usual      ? "whether it does so while nobody records is not known"
                                 : measured > 0 ? "that the pages are theirs, and not of mapped files, is inferred"
                                                : "what a page takes on that machine was not measured"});
  std::vector<Evidence>& evidence = found.finding.evidence;
  if (!is_usual) {  // the steps that gains are of have none of it
    found.rewrite = {};
    found.explains.clear();
    evidence.clear();
  }
  double pages = 0;
  for (const auto& [trace, of] : anew) pages = std::max(pages, of.pages);
  evidence.push_back({.text = is_usual ? "Pages of new memory in a step" : "Pages of new memory in a recorded step",
                      .value = static_cast<std::int64_t>(std::llround(pages)),
                      .unit = Unit::count});
  if (page_faults_per_step(about.trace) == pages) evidence.back().query = setting_of("page_faults");
  if (measured > 0) {
    evidence.push_back(
        {.text = "A page takes here", .value = measured, .unit = Unit::ns, .query = setting_of("page_ns")});
  }
  out.push_back(std::move(found));
}

}  // namespace

Cause memory_returned_cause() {
  return {"memory_returned", "Memory that goes back to the system in each step", find_returned};
}

}  // namespace stepscope::diagnose::causes
