// Modes of torch that look for faults, left on: they cost with each operator.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/noted.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/answer_parts.h"
#include "model/lookup.h"
#include "model/settings.h"
#include "model/telemetry.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kCallNs = 2'000;  // of an operator, whatever it does

// Anomaly mode looks for NaN behind each node of the backward pass: is it inside of one of these, right below the node?
bool looks_for_nan(const Work& work) {
  const Trace& trace = *work.trace;
  SliceId below = SliceId::none, at = work.inside;
  while (at != SliceId::none && at != work.operation) below = at, at = trace.slices.parent[at];
  if (below == SliceId::none) return false;
  const std::string_view name = trace.name(below);
  return name == "aten::isnan" || name == "aten::_is_any_true" || name == "aten::any" || name == "aten::item" ||
         name == "aten::is_nonzero";
}

struct StackCost {
  std::int64_t least_ns = 20'000, most_ns = 200'000;
};

// What writing down a Python stack costs: all of the time of what does nothing else, another look at the same memory.
// The mean, since all of them count, the long ones too.
StackCost stack_cost(const Case& about, const Noted& nodes) {
  constexpr std::int64_t kFewest = 10;
  std::int64_t count = 0, total_ns = 0;
  for_each_work(about, [&](std::uint32_t, const Work& work) {
    if (work.device || work.operation == SliceId::none || !nodes.has(*work.trace, work.inside)) return;
    if (is_view(work.trace->name(work.inside)) && work.cost_ns > kCallNs) count++, total_ns += work.cost_ns - kCallNs;
  });
  if (count < kFewest) return {};
  const std::int64_t usual = total_ns / count;
  return {usual - usual / 10, usual + usual / 10};
}

void find_anomaly_mode(const Case& about, std::vector<Diagnosis>& out) {
  const bool told = is_set(about.trace, "anomaly_mode");
  Gathered looks(about);
  bool any = false;
  // Each operator of the forward pass writes down its whole Python stack.
  const Noted& nodes = noted(about);
  const StackCost stack = told ? stack_cost(about, nodes) : StackCost();
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (work.operation == SliceId::none) return;
    const Trace& trace = *work.trace;
    if (is_backward(trace.name(work.operation))) {
      // Behind a node of the graph its stack is let go, text by text.
      if (told && work.inside == work.operation) {
        looks.add_ns(node, work, "stacks", std::min(work.cost_ns, kCallNs), std::min(work.cost_ns, 3 * kCallNs));
      }
      if (!looks_for_nan(work)) return;
      any = any || trace.name(work.inside) == "aten::isnan";
      looks.add(node, work, "aten::isnan", 0, 0);
    } else if (told && !work.device && nodes.has(trace, work.inside)) {
      const std::int64_t own = std::min(work.cost_ns, kCallNs);
      looks.add_ns(node, work, trace.name(work.inside), std::max(own, work.cost_ns - stack.most_ns),
                   std::max(own, work.cost_ns - stack.least_ns));
    }
  });
  if ((!any && !told) || !looks.worth_saying()) return;
  out.push_back(looks.diagnosis(
      {.cause = "debug",
       .sentence = "Autograd looks for NaN behind each operator (anomaly mode), and notes a Python stack for "
                   "each",
       .next = "Leave out torch.autograd.set_detect_anomaly(True) and detect_anomaly(); turn them on when a "
               "NaN has to be found",
       .called = "set_detect_anomaly"}));
}

// Deterministic algorithms fill all new memory, with what is no number.
void find_deterministic(const Case& about, std::vector<Diagnosis>& out) {
  if (!is_set(about.trace, "deterministic")) return;
  // What is filled is memory that somebody will write to; that it is new may cost him as much.
  constexpr double kMostLeft = 0.5;
  Gathered fills(about);
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    if (work.operation == SliceId::none) return;
    const Trace& trace = *work.trace;
    const SliceId fill = op_around(trace, work.inside);
    if (fill == SliceId::none || trace.name(fill) != "aten::fill_") return;
    const SliceId around = trace.slices.parent[fill];
    if (around == SliceId::none || !is_without_values(trace.name(around))) return;
    fills.add(node, work, trace.name(around), 0, kMostLeft);
  });
  if (!fills.worth_saying()) return;
  out.push_back(fills.diagnosis(
      {.cause = "debug",
       .sentence = "Deterministic algorithms are on, and fill all new memory",
       .next = "Leave out torch.use_deterministic_algorithms(True) where runs need not be alike bit by bit; else "
               "torch.utils.deterministic.fill_uninitialized_memory = False",
       .called = "use_deterministic_algorithms"}));
}

// A profiler that the program itself runs around its steps, in which nothing else can be recorded.
void find_profiler(const Case& about, std::vector<Diagnosis>& out) {
  constexpr std::int64_t kMany = 20;  // steps that somebody wants to look at are fewer
  constexpr double kMostOfJob = 0.2;
  const Trace* history = marks_of_rank(about.run, about.trace.rank.rank);
  if (history == nullptr) return;
  std::int64_t steps = 0, line = 0;
  std::string file;
  for (const Metadata& one : history->metadata) {
    if (one.key == kOwnProfiledSteps) steps = std::strtoll(one.json.c_str(), nullptr, 10);
    if (one.key == kOwnProfilerFile) file = one.json;
    if (one.key == kOwnProfilerLine) line = std::strtoll(one.json.c_str(), nullptr, 10);
  }
  const auto all = static_cast<double>(history->steps.size());
  if (steps < kMany || static_cast<double>(steps) < kMostOfJob * all) return;
  Diagnosis found{.no_gain = "Unknown: what a profiler costs shows without it; its steps cannot be recorded."};
  Finding& finding = found.finding;
  finding.cause = "debug";
  finding.sentence = "The program records its own steps with torch.profiler, which costs each of them";
  finding.where.rank = about.trace.rank.rank;
  if (!file.empty()) finding.where.file = file, finding.where.line = line;
  finding.evidence = {{.text = "Steps that ended while it recorded", .value = steps, .unit = Unit::count},
                      {.text = "Of so many", .value = static_cast<std::int64_t>(all), .unit = Unit::count}};
  put_doubt(finding, "");
  finding.next =
      "Leave it out, or give it a schedule that ends: schedule(wait=10, warmup=2, active=3, repeat=1); then "
      "stepscope can record the others";
  out.push_back(std::move(found));
}

}  // namespace

Cause debug_mode_cause() {
  return {"debug_mode", "Modes that look for faults", [](const Case& about, std::vector<Diagnosis>& out) {
            find_anomaly_mode(about, out);
            find_deterministic(about, out);
            find_profiler(about, out);
          }};
}

}  // namespace stepscope::diagnose::causes
