#include "diagnose/model_calls.h"

#include <algorithm>
#include <unordered_map>

#include "diagnose/passes.h"
#include "model/lookup.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// Ranges of modules in which no other module's range is around, by time.
std::vector<ModelCall> outermost_of(const Trace& trace) {
  std::unordered_map<SliceId, StringId> modules;
  for (const ModuleCall& call : trace.modules) modules[call.slice] = call.name;
  std::vector<ModelCall> out;
  for (const ModuleCall& call : trace.modules) {
    bool inner = false;
    for (SliceId at = trace.slices.parent[call.slice]; at != SliceId::none && !inner; at = trace.slices.parent[at]) {
      inner = modules.contains(at);
    }
    if (inner) continue;
    out.push_back({.trace = &trace,
                   .slice = call.slice,
                   .module = trace.strings[call.name],
                   .start_ns = trace.slices.start_ns[call.slice],
                   .end_ns = trace.slices.end_ns(call.slice)});
  }
  std::sort(out.begin(), out.end(), [](const ModelCall& a, const ModelCall& b) { return a.start_ns < b.start_ns; });
  return out;
}

ModelCall* call_at(std::vector<ModelCall>& calls, std::int64_t time_ns) {
  auto after = std::upper_bound(calls.begin(), calls.end(), time_ns,
                                [](std::int64_t t, const ModelCall& call) { return t < call.start_ns; });
  if (after == calls.begin()) return nullptr;
  --after;
  return time_ns < after->end_ns ? &*after : nullptr;
}

std::vector<ModelCall> look_for_calls(const Case& about) {
  std::vector<ModelCall> out;
  for (const Trace& trace : timelines(about.run)) {
    std::vector<ModelCall> calls = outermost_of(trace);
    if (calls.empty()) continue;
    for_each_work(about, [&](std::uint32_t node, const Work& work) {
      if (work.trace != &trace) return;
      const std::int64_t at =
          work.device && work.inside != SliceId::none ? trace.slices.start_ns[work.inside] : work.start_ns;
      if (ModelCall* call = call_at(calls, at)) call->nodes.push_back(node);
    });
    const Inputs& known = inputs(about);
    const Passes& pass = passes(about);
    for (std::size_t row = 0; row < trace.ops.size(); row++) {
      const SliceId slice = trace.ops.slice[row];
      if (about.outermost(trace, slice) != slice) continue;
      ModelCall* call = call_at(calls, trace.slices.start_ns[slice]);
      if (call == nullptr || trace.slices.track[slice] != trace.slices.track[call->slice]) continue;
      // A table of words is given as a whole: behind it comes what is looked up there.
      const std::vector<Shape>& shapes = known.of(trace, slice).shapes;
      const std::string_view name = trace.name(slice);
      const std::size_t first = name == "aten::embedding" ? 1 : 0;
      for (std::size_t i = first; i < shapes.size() && name.find("embedding_bag") == name.npos; i++) {
        if (call->sizes.empty()) call->sizes = shapes[i].sizes;
      }
      call->trains = call->trains || !pass.backward(trace, slice).empty();
      call->recorded = call->recorded || is_recorded(trace, row);
    }
    out.insert(out.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  }
  return out;
}

}  // namespace

const std::vector<ModelCall>& model_calls(const Case& about) {
  return about.shared<std::vector<ModelCall>>(look_for_calls);
}

bool put_model(const Case& about, const Trace& trace, std::string_view module, Place& place) {
  place.module = std::string(module);
  const CodeCall* call = about.places.first_call(trace, "(calls) " + std::string(module));
  if (call == nullptr) return false;
  place.file = call->file;
  place.line = call->line;
  place.function.reset();
  return true;
}

}  // namespace stepscope::diagnose
