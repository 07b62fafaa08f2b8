// Modes of torch that look for faults, left on: they cost with each operator.
#include <algorithm>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/noted.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/answer_parts.h"
#include "model/settings.h"
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

}  // namespace

Cause debug_mode_cause() {
  return {"debug_mode", "Modes that look for faults", [](const Case& about, std::vector<Diagnosis>& out) {
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
                  looks.add_ns(node, work, "stacks", std::min(work.cost_ns, kCallNs),
                               std::min(work.cost_ns, 3 * kCallNs));
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
          }};
}

}  // namespace stepscope::diagnose::causes
