// Gradients that travel after each backward pass of a step, where once after the last would do.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/communicating.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose::causes {

namespace {

// What functions of the program that ask for these do beside it: bring gradients into one tensor, divide it, copy it
// back. Not where such a function also computes gradients or steps an optimizer: then it is the step itself.
std::vector<std::uint32_t> beside_calls(const Case& about, const std::vector<const Collective*>& calls) {
  std::set<Function> functions;
  for (const Collective* one : calls) {
    if (one->call == SliceId::none) continue;
    const Code code = about.code(about.trace, one->call);
    const CodeFrame* own = code.own();
    const Source& source = about.places.source(about.trace);
    if (own != nullptr && !source.calls(*own, "backward") && !source.calls(*own, "step")) {
      functions.insert(function_of(*own));
    }
  }
  std::vector<std::uint32_t> nodes;
  if (functions.empty()) return nodes;
  for (const Operator& one : forward_operators(about)) {
    if (one.name.starts_with("c10d::") || one.phase == Phase::optimizer || one.phase == Phase::forward) continue;
    if (!functions.contains(function_of(about.code(*one.trace, one.slice)))) continue;
    const std::vector<std::uint32_t>& work = passes(about).nodes(*one.trace, one.slice);
    nodes.insert(nodes.end(), work.begin(), work.end());
    nodes.insert(nodes.end(), one.after.begin(), one.after.end());
  }
  return nodes;
}

}  // namespace

Cause reduce_every_micro_batch_cause() {
  return {"reduce_every_micro_batch", "Gradients reduced for every micro batch",
          [](const Case& about, std::vector<Diagnosis>& out) {
            const Communicating& all = communicating(about);
            if (all.steps == 0 || all.backward_passes % all.steps != 0) return;
            const std::int64_t passes = all.backward_passes / all.steps;
            if (passes < 2) return;
            std::map<StepId, std::vector<const Collective*>> steps;
            for (const Collective& one : all.collectives) {
              if (one.kind == CollectiveKind::all_reduce && one.step != StepId::none) steps[one.step].push_back(&one);
            }
            Gathered again(about);
            std::vector<std::uint32_t> gone;
            std::size_t matched = 0;  // steps
            for (const auto& [step, in_step] : steps) {
              const std::size_t turn = in_step.size() / static_cast<std::size_t>(passes);
              if (turn == 0 || in_step.size() % static_cast<std::size_t>(passes) != 0) continue;
              bool same = true;
              for (std::size_t i = turn; i < in_step.size(); i++)
                same = same && in_step[i]->bytes == in_step[i - turn]->bytes;
              if (!same) continue;
              matched++;
              for (std::size_t i = 0; i + turn < in_step.size(); i++) {
                again.add(in_step[i]->nodes, to_string(in_step[i]->kind), 0, 0);
                gone.insert(gone.end(), in_step[i]->nodes.begin(), in_step[i]->nodes.end());
              }
            }
            if (gone.empty()) return;
            // With them goes what the reducer does in backward passes: sums are divided, and copied there and back.
            const double left = 1 / static_cast<double>(passes);
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              if (matched == steps.size() && (asks_to_reduce(work) || is_of_reducer(work)))
                again.add_along(node, left, left);
            });
            if (matched == steps.size()) {
              for (const std::uint32_t node : beside_calls(about, steps.begin()->second))
                again.add_along(node, left, left);
            }
            again.add_relieved(gone);
            if (!again.worth_saying()) return;
            Diagnosis found =
                again.diagnosis({.cause = "communication",
                                 .sentence = "Gradients travel after each micro batch, though only their sum is used",
                                 .next = "Run all micro batches but the last under model.no_sync()"});
            put_call(about, *steps.begin()->second.front(), found.finding.where);
            found.finding.evidence.push_back({.text = "Backward passes in a step, each reduced",
                                              .value = passes,
                                              .unit = Unit::count,
                                              .query = collectives_of()});
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
