// Activations that are thrown away and made again in the backward pass (checkpointing), which pays only where memory is
// short.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/intervals.h"
#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

// What runs forward again in an operator of a backward pass, from the first operator that autograd records to the last,
// and the code right around it, up to the next operator outside of that.
struct Rerun {
  Interval operators, code;
};
using Again = std::unordered_map<SliceId, Rerun>;  // by outermost operator

// Backward passes record nothing, unless a forward pass runs in them again. They do for a gradient of a gradient as
// well: then there is a second backward pass, which goes back through what was recorded.
Again computed_again(const Case& about, const Trace& trace) {
  // With a device they run on a thread of their own, while the one that called them waits.
  std::vector<SliceId> outermost;
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    const SliceId slice = trace.ops.slice[row];
    if (about.outermost(trace, slice) == slice) outermost.push_back(slice);
  }
  std::stable_sort(outermost.begin(), outermost.end(),
                   [&](SliceId a, SliceId b) { return trace.slices.start_ns[a] < trace.slices.start_ns[b]; });
  std::unordered_map<SliceId, std::size_t> pass_of;  // outermost backward operators, numbered by pass
  std::size_t pass = 0;
  bool inside = false;
  for (const SliceId slice : outermost) {
    const bool backward = is_backward(trace.name(slice));
    if (backward && !inside) pass++;
    inside = backward;
    if (backward) pass_of[slice] = pass;
  }
  std::unordered_set<SliceId> twice_derived;
  for (const stepscope::Backward& pair : trace.backward) {
    const auto first = pass_of.find(about.outermost(trace, pair.forward));
    const auto second = pass_of.find(about.outermost(trace, pair.backward));
    if (first == pass_of.end() || second == pass_of.end() || first->second == second->second) continue;
    twice_derived.insert(pair.forward);
  }
  Again out;
  const auto of_backward = [&](SliceId slice) {
    const SliceId around = about.outermost(trace, slice);
    return around != slice && pass_of.contains(around) ? around : SliceId::none;
  };
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    const SliceId slice = trace.ops.slice[row];
    if (!is_recorded(trace, row) || trace.kind(slice) != SliceKind::cpu_op || twice_derived.contains(slice)) continue;
    const SliceId around = of_backward(slice);
    if (around == SliceId::none) continue;
    const Interval when{trace.slices.start_ns[slice], trace.slices.end_ns(slice)};
    const auto [at, is_new] = out.try_emplace(around, Rerun{when, {}});
    Interval& all = at->second.operators;
    if (!is_new) all = {std::min(all.start, when.start), std::max(all.end, when.end)};
  }
  for (auto& [around, again] : out) again.code = {trace.slices.start_ns[around], trace.slices.end_ns(around)};
  for (const SliceId slice : trace.ops.slice) {
    const auto at = out.find(of_backward(slice));
    if (at == out.end()) continue;
    Rerun& again = at->second;
    const std::int64_t start_ns = trace.slices.start_ns[slice], end_ns = trace.slices.end_ns(slice);
    if (end_ns <= again.operators.start) again.code.start = std::max(again.code.start, end_ns);
    if (start_ns >= again.operators.end) again.code.end = std::min(again.code.end, start_ns);
  }
  return out;
}

}  // namespace

Cause recomputation_cause() {
  return {"recomputation", "Activations computed a second time", [](const Case& about, std::vector<Diagnosis>& out) {
            Gathered again(about);
            std::unordered_map<const Trace*, Again> known;
            for_each_work(about, [&](std::uint32_t node, const Work& work) {
              if (work.operation == SliceId::none || !is_backward(work.trace->name(work.operation))) return;
              const auto [of, is_new] = known.try_emplace(work.trace);
              if (is_new) of->second = computed_again(about, *work.trace);
              const auto when = of->second.find(work.operation);
              if (when == of->second.end()) return;
              const std::int64_t at = work.device ? work.trace->slices.start_ns[work.inside] : work.start_ns;
              const bool is_own_time =
                  !work.device && work.role == simulate::NodeRole::host &&
                  (work.slice == SliceId::none || work.trace->kind(work.slice) != SliceKind::runtime);
              const Interval& counts = is_own_time ? when->second.code : when->second.operators;
              if (at < counts.start || at >= counts.end) return;
              again.add(node, work, work.inside == SliceId::none ? "" : work.trace->name(work.inside), 0, 0.05);
            });
            if (!again.worth_saying()) return;
            Diagnosis found = again.diagnosis(
                {.cause = "memory",
                 .sentence = "Activations are thrown away and computed again in the backward pass",
                 .next = "Where memory is not short, leave out torch.utils.checkpoint, or checkpoint fewer blocks; "
                         "stepscope report PATH --only memory says how much is in use",
                 .doubt = "whether memory suffices without it is for you to say"});
            // Not what is computed again is to be changed, but where the program says that it be so.
            const Work& example = again.names().first().example;
            if (const auto place = about.places.call_into(*example.trace, reason_code(about, example),
                                                          "torch/utils/checkpoint.py", "checkpoint")) {
              found.finding.where.function = place->function;
              found.finding.where.file = place->file;
              found.finding.where.line = place->line;
            }
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
