// A rank that the others wait for since it does more than they: functions of its own, or more Python in the same ones.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/code_between.h"
#include "diagnose/gathered.h"
#include "diagnose/stragglers.h"

namespace stepscope::diagnose::causes {
namespace {

// What one of the program's functions does on a rank: operators that it calls, and code between them.
struct Done {
  std::string name;
  std::size_t calls = 0;  // operators, and long stretches of code
  std::int64_t ns = 0;
  std::vector<std::uint32_t> nodes;
};
using Functions = std::map<Function, Done>;

Functions functions_of(const Case& about, const Trace& trace) {
  std::map<std::uint32_t, const CodeFrame*> long_stretches;
  for (const BetweenOperators& one : about.shared<std::vector<BetweenOperators>>(code_between)) {
    if (about.work(one.node).trace == &trace) long_stretches[one.node] = one.code.own();
  }
  Functions out;
  const auto add = [&](const CodeFrame* own, std::uint32_t node, std::size_t calls) {
    if (own == nullptr) return;
    Done& done = out[{own->file, own->line}];
    done.name = own->function;
    done.calls += calls;
    done.ns += about.cost_ns(node);
    done.nodes.push_back(node);
  };
  for (const Operation& one : about.operations(trace)) {
    if (trace.step_at(trace.slices.start_ns[one.slice]) == StepId::none) continue;
    const Code code = about.code(trace, one.slice);
    for (const std::uint32_t node : one.nodes) add(code.own(), node, node == one.nodes.front() ? 1 : 0);
    for (const std::uint32_t node : one.after) {
      const auto stretch = long_stretches.find(node);
      add(stretch == long_stretches.end() ? code.own() : stretch->second, node,
          stretch == long_stretches.end() ? 0 : 1);
    }
  }
  return out;
}

// Functions that the others call far less, or not at all: what they take more there.
std::int64_t add_own_functions(const Case& about, const Straggler& late, Gathered& more) {
  constexpr double kFarLess = 0.5;
  constexpr std::size_t kMostOthers = 4;  // each is gone through as a whole
  std::vector<Functions> others;
  for (const simulate::StepWindow& window : about.predictor.windows()) {
    const Trace& trace = about.run.traces[window.trace];
    if (&trace != late.trace && others.size() < kMostOthers) others.push_back(functions_of(about, trace));
  }
  std::int64_t more_ns = 0;
  for (const auto& [function, done] : functions_of(about, *late.trace)) {
    double calls = 0, ns = 0;  // as the mean of these others
    for (const Functions& one : others) {
      const auto found = one.find(function);
      if (found == one.end()) continue;
      calls += static_cast<double>(found->second.calls) / static_cast<double>(others.size());
      ns += static_cast<double>(found->second.ns) / static_cast<double>(others.size());
    }
    const auto own_ns = static_cast<double>(done.ns);
    if (calls > kFarLess * static_cast<double>(done.calls) || ns >= own_ns) continue;
    more_ns += static_cast<std::int64_t>(own_ns - ns);
    for (const std::uint32_t node : done.nodes) more.add(node, about.work(node), done.name, ns / own_ns, ns / own_ns);
  }
  return more_ns;
}

void find_more_to_do(const Case& about, const Straggler& late, std::vector<Diagnosis>& out) {
  const std::int64_t excess_ns = late.own_ns - late.others_ns;
  Gathered functions(about);
  const std::int64_t in_functions_ns = add_own_functions(about, late, functions);
  const bool by_function = 2 * in_functions_ns >= excess_ns;
  // Else all code between operators alike, where that is most of what it does more.
  const std::int64_t more_ns = by_function ? in_functions_ns : late.code_ns - late.others_code_ns;
  if (!late.steady && !by_function) return;  // a pause of a thread is code between operators as well
  if (2 * more_ns < excess_ns || about.share(more_ns) < kWorthSaying) return;
  Gathered code(about);
  const double left = static_cast<double>(late.others_code_ns) / static_cast<double>(late.code_ns);
  for (const std::uint32_t node : late.code) {
    if (!by_function) code.add(node, about.work(node), "code between operators", left, left);
  }
  const Gathered& more = by_function ? functions : code;
  if (!more.worth_saying()) return;
  Diagnosis found =
      more.diagnosis({.cause = "imbalance",
                      .sentence = "The other ranks wait for this one, which does more than they",
                      .next = "Let all ranks share it, do it less often, or in another thread or process"});
  if (by_function) found.finding.where.op.reset();
  found.finding.evidence.push_back({.text = by_function ? "In functions of which the others do far less, per step"
                                                        : "Code between operators, more than the others, per step",
                                    .value = more_ns / about.steps,
                                    .unit = Unit::ns});
  out.push_back(std::move(found));
}

}  // namespace

Cause straggler_host_cause() {
  return {"straggler_host", "A rank with more to do on its host", [](const Case& about, std::vector<Diagnosis>& out) {
            for (const Straggler& late : stragglers(about)) {
              if (!late.on_device) find_more_to_do(about, late, out);
            }
          }};
}

}  // namespace stepscope::diagnose::causes
