// torch.compile compiles again what it had compiled already, since its guards failed: for each new size, mostly.
#include <string_view>
#include <unordered_map>
#include <utility>

#include "diagnose/gathered.h"
#include "diagnose/model_calls.h"
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

}  // namespace

Cause recompilations_cause() {
  return {
      "recompilations", "Code compiled again and again", [](const Case& about, std::vector<Diagnosis>& out) {
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
        if (!compiling.worth_saying()) return;
        Diagnosis found = compiling.diagnosis(
            {.cause = "compile",
             .sentence = "torch.compile compiles code again that it had compiled already, since its guards failed",
             .next = "For sizes that change use torch.compile(dynamic=True) or torch._dynamo.mark_dynamic, or pad to "
                     "a few sizes; TORCH_LOGS=recompiles says which guard failed",
             .called = "compile"});
        // Where it is compiled in one place the change belongs there; else the model's call is at least what compiles.
        const Work& example = compiling.names().first().example;
        const std::string_view model = model_around(about, example);
        if (about.places.source(*example.trace).only_call("compile") == nullptr && !model.empty()) {
          put_model(about, *example.trace, model, found.finding.where);
        }
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
