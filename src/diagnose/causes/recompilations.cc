// torch.compile compiles again what it had compiled already, since its guards failed: for each new size, mostly.
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "diagnose/gathered.h"
#include "diagnose/marked_steps.h"
#include "diagnose/model_calls.h"
#include "diagnose/queries.h"
#include "model/compile_names.h"
#include "model/telemetry.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

// Compilations of a frame that had been compiled before: their slices.
std::unordered_map<SliceId, CompileId> compiled_again(const Trace& trace) {
  std::unordered_map<SliceId, CompileId> out;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto slice = static_cast<SliceId>(row);
    const std::optional<CompileId> frame = frame_compile_id(trace.name(slice));
    const std::optional<CompileId> id = frame ? frame : backward_compile_id(trace.name(slice));
    if (!id || id->attempt == 0) continue;
    for (SliceId at = slice; at != SliceId::none; at = trace.slices.parent[at]) {
      if (frame ? is_frame_compile(trace.name(at)) : is_backward_compile(trace.name(at))) out[at] = *id;
    }
  }
  return out;
}

// The model in whose call the work is; empty: none.
std::string_view model_around(const Case& about, const Work& work) {
  for (const ModelCall& call : model_calls(about)) {
    if (call.trace != work.trace || call.track != work.track) continue;
    if (call.start_ns <= work.start_ns && work.start_ns < call.end_ns) return call.module;
  }
  return {};
}

constexpr std::string_view kAgain =
    "torch.compile compiles code again that it had compiled already, since its guards failed";

// Is it the size of something? Else it is what the compiled code took for constant.
bool is_size(std::string_view guard) {
  const auto has = [&](std::string_view part) { return guard.find(part) != guard.npos; };
  return has("size") || has("stride") || has("shape") || has("len(");
}

std::string_view what_to_do(std::string_view guard) {
  if (guard.empty() || is_size(guard)) {
    return "For sizes that change use torch.compile(dynamic=True) or torch._dynamo.mark_dynamic, or pad to a few "
           "sizes; "
           "TORCH_LOGS=recompiles says which guard failed";
  }
  return "What the guard names is a constant of the compiled code: keep a number that changes in a tensor (such as a "
         "buffer, by fill_()), or read it outside of what is compiled; TORCH_LOGS=recompiles says more";
}

void put_guard(const Compilation& newest, Finding& finding) {
  if (newest.guard.empty()) return;
  finding.evidence.push_back({.text = "The guard that failed: " + newest.guard, .value = Value()});
  // Sizes come from where the model is called; the place of a constant is what asks for it.
  if (newest.file.empty() || (is_size(newest.guard) && finding.where.line)) return;
  finding.where.file = newest.file;
  finding.where.line = newest.line;
  finding.where.function = newest.function;
}

// The last whose guard is known; empty: none.
Compilation newest_again(const Case& about) {
  const Trace* history = marks_of_rank(about.run, about.trace.rank.rank);
  Compilation newest;
  if (history == nullptr) return newest;
  for (Compilation& one : compilations(*history)) {
    if (one.attempt > 0 && !one.guard.empty()) newest = std::move(one);
  }
  return newest;
}

// None of the recorded steps compiles, others do.
void by_marks(const Case& about, std::vector<Diagnosis>& out) {
  const std::optional<Recompiled> again = recompiled(about);
  if (!again || again->share < kWorthSaying) return;
  constexpr double kMostLeft = 0.1;
  const double left = 1 - again->share;
  Diagnosis found;
  found.known_gain = Gain{.speedup_low = 1 / (left + kMostLeft * again->share),
                          .speedup_high = 1 / left,
                          .binds = about.now.binds,
                          .how = "from the marks of all steps"};
  Finding& finding = found.finding;
  finding.cause = "compile";
  finding.sentence = kAgain;
  finding.where.rank = about.trace.rank.rank;
  finding.evidence = {
      {.text = "Of all marked steps' time", .value = again->share, .unit = Unit::ratio, .query = marks_of_steps()},
      {.text = "Compiled again", .value = again->count, .unit = Unit::count},
      {.text = "Steps in which", .value = again->steps, .unit = Unit::count}};
  if (const CodeCall* compiles = about.places.source(about.trace).only_call("compile"); compiles != nullptr) {
    put_call(*compiles, finding.where);
  }
  put_guard(again->newest, finding);
  put_doubt(finding, "none of these steps was recorded; torch itself said what it compiled");
  finding.next = what_to_do(again->newest.guard);
  out.push_back(std::move(found));
}

}  // namespace

Cause recompilations_cause() {
  return {"recompilations", "Code compiled again and again", [](const Case& about, std::vector<Diagnosis>& out) {
            Gathered compiling(about);
            for (const Trace& trace : timelines(about.run)) {
              const auto again = compiled_again(trace);
              if (again.empty()) continue;
              for_each_work(about, [&](std::uint32_t node, const Work& work) {
                if (work.trace != &trace || work.device) return;
                for (SliceId at = work.slice; at != SliceId::none; at = trace.slices.parent[at]) {
                  if (!again.contains(at)) continue;
                  compiling.add(node, work, "compilation", 0, 0);
                  break;
                }
              });
            }
            if (!compiling.worth_saying()) return by_marks(about, out);
            const Compilation newest = newest_again(about);
            Diagnosis found = compiling.diagnosis({.cause = "compile",
                                                   .sentence = std::string(kAgain),
                                                   .next = std::string(what_to_do(newest.guard)),
                                                   .called = "compile"});
            // Where it is compiled in one place the change belongs there; else the model's call is at least what
            // compiles.
            const Work& example = compiling.names().first().example;
            const std::string_view model = model_around(about, example);
            if (about.places.source(*example.trace).only_call("compile") == nullptr && !model.empty()) {
              put_model(about, *example.trace, model, found.finding.where);
            }
            put_guard(newest, found.finding);
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
