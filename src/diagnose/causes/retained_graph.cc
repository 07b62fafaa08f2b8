// Backward passes that go through the same graph several times: once for each loss, or each optimizer.
#include <map>
#include <tuple>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/passes.h"
#include "model/lookup.h"

namespace stepscope::diagnose::causes {
namespace {

// A node of the graph by its number, which it keeps as long as the graph is kept, and the operator that made it. Where
// that was not recorded, by the step: numbers may begin anew.
using GraphNode = std::tuple<const Trace*, SliceId, StepId, std::int64_t, std::int64_t, StringId>;

// A forward pass in a backward one: the gradient itself is derived, or activations are computed again. The graph is
// gone back through twice of necessity, or seems to be.
bool derives_in_backward(const Case& about, const Trace& trace) {
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    if (!is_recorded(trace, row)) continue;
    const SliceId slice = trace.ops.slice[row], outermost = about.outermost(trace, slice);
    if (outermost != SliceId::none && outermost != slice && is_backward(trace.name(outermost))) return true;
  }
  return false;
}

}  // namespace

Cause retained_graph_cause() {
  return {
      "retained_graph", "Several backward passes through one graph",
      [](const Case& about, std::vector<Diagnosis>& out) {
        std::map<GraphNode, SliceId> first;
        std::map<const Trace*, bool> derived;
        Gathered again(about);
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          const Trace& trace = *work.trace;
          if (work.operation == SliceId::none || !is_backward(trace.name(work.operation))) return;
          const auto [known, is_first] = derived.try_emplace(&trace, false);
          if (is_first) known->second = derives_in_backward(about, trace);
          if (known->second) return;
          const std::size_t row = row_of(trace.ops.slice, work.operation);
          if (row == trace.ops.size() || !trace.ops.sequence.has(row) || trace.ops.sequence[row] < 0) return;
          const SliceId maker = passes(about).reason(trace, work.operation);
          const bool known_maker = maker != work.operation;
          const GraphNode of{&trace,
                             known_maker ? maker : SliceId::none,
                             known_maker ? StepId::none : trace.step_at(trace.slices.start_ns[work.operation]),
                             trace.ops.sequence[row],
                             trace.ops.fwd_thread[row],
                             trace.slices.name[work.operation]};
          const auto [at, is_new] = first.try_emplace(of, work.operation);
          if (at->second == work.operation) return;
          again.add(node, work, trace.name(work.operation), 0, 0.05);
        });
        if (!again.worth_saying()) return;
        out.push_back(again.diagnosis(
            {.cause = "autograd",
             .sentence = "The backward pass goes through the same part of the graph more than once",
             .next = "Add the losses up and call backward() once, without retain_graph=True: it goes through what "
                     "they share one time. Where the first of them needs no gradient of it, detach() what it is given",
             .called = "backward(retain_graph)"}));
      }};
}

}  // namespace stepscope::diagnose::causes
