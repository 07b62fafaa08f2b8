// torch.compile compiles again what it had compiled already, since its guards failed: for each new size, mostly.
#include <cstdint>
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

enum class GuardKind : std::uint8_t { size, number, other };

// As torch._dynamo writes them.
GuardKind kind_of(std::string_view guard) {
  for (const std::string_view part : {"size mismatch", "stride mismatch", ".size()[", ".stride()[", ".shape["}) {
    if (guard.find(part) != guard.npos) return GuardKind::size;
  }
  constexpr std::string_view kEquals = " == ";
  const std::size_t at = guard.rfind(kEquals);
  if (at == guard.npos || at + kEquals.size() == guard.size()) return GuardKind::other;
  const char first = guard[at + kEquals.size()];
  return (first >= '0' && first <= '9') || first == '-' ? GuardKind::number : GuardKind::other;
}

std::string_view what_to_do(std::string_view guard) {
  switch (guard.empty() ? GuardKind::size : kind_of(guard)) {
    case GuardKind::size:
      return "For sizes that change use torch.compile(dynamic=True) or torch._dynamo.mark_dynamic, or pad to a few "
             "sizes; TORCH_LOGS=recompiles says which guard failed";
    case GuardKind::number:
      return "The number in the guard is a constant of the compiled code: keep it in a tensor (a buffer, by fill_()), "
             "or use it outside of what is compiled; TORCH_LOGS=recompiles says more";
    case GuardKind::other: break;
  }
  return "Keep what the guard asks for the same in all steps, or compile the few cases before the training; "
         "TORCH_LOGS=recompiles says more";
}

void put_guard(const Compilation& newest, Finding& finding) {
  if (newest.guard.empty()) return;
  finding.evidence.push_back({.text = "The guard that failed: " + newest.guard, .value = Value()});
  // Sizes come from where the model is called; the place of a constant is what asks for it.
  if (newest.file.empty() || (kind_of(newest.guard) == GuardKind::size && finding.where.line)) return;
  finding.where.file = newest.file;
  finding.where.line = newest.line;
  finding.where.function = newest.function;
  finding.where.module.reset();
}

// The recorded steps hardly compile, others do.
void by_marks(const Case& about, bool recorded, std::vector<Diagnosis>& out) {
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
  put_doubt(finding, recorded ? "" : "none of these steps was recorded; torch itself said what it compiled");
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
            if (!compiling.worth_saying()) return by_marks(about, !compiling.names().empty(), out);
            const Compilation newest = guard_in_recording(about);
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
