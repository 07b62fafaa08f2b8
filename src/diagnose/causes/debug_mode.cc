// Modes of torch that look for faults, left on: they cost with each operator.
#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/passes.h"
#include "diagnose/settings.h"

namespace stepscope::diagnose::causes {
namespace {

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

}  // namespace

Cause debug_mode_cause() {
  return {"debug_mode", "Modes that look for faults", [](const Case& about, std::vector<Diagnosis>& out) {
            const bool told = is_set(about.trace, "anomaly_mode");
            // Each operator of the forward pass writes down its whole Python stack.
            constexpr std::int64_t kLeastStackNs = 20'000, kMostStackNs = 200'000, kCallNs = 3'000;
            Gathered looks(about);
            bool any = false;
            const Passes& pass = passes(about);
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              if (work.operation == SliceId::none) return;
              const Trace& trace = *work.trace;
              if (is_backward(trace.name(work.operation))) {
                if (!looks_for_nan(work)) return;
                any = any || trace.name(work.inside) == "aten::isnan";
                looks.add(node, work, "aten::isnan", 0, 0);
              } else if (told && !work.device && work.inside == work.operation &&
                         !pass.backward(trace, work.operation).empty()) {
                const std::int64_t own = std::min(work.cost_ns, kCallNs);
                looks.add_ns(node, work, trace.name(work.operation), std::max(own, work.cost_ns - kMostStackNs),
                             std::max(own, work.cost_ns - kLeastStackNs));
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
