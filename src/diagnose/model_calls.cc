#include "diagnose/model_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

#include "diagnose/passes.h"
#include "model/lookup.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

using CallsByThread = std::map<TrackId, std::vector<ModelCall>>;

// Ranges of modules in which no other module's range is around, by time.
CallsByThread outermost_of(const Trace& trace) {
  std::unordered_set<SliceId> modules;
  for (const ModuleCall& call : trace.modules) modules.insert(call.slice);
  CallsByThread out;
  for (const ModuleCall& call : trace.modules) {
    bool inner = false;
    for (SliceId at = trace.slices.parent[call.slice]; at != SliceId::none && !inner; at = trace.slices.parent[at]) {
      inner = modules.contains(at);
    }
    if (inner) continue;
    const TrackId track = trace.slices.track[call.slice];
    out[track].push_back({.trace = &trace,
                          .slice = call.slice,
                          .track = track,
                          .module = trace.strings[call.name],
                          .start_ns = trace.slices.start_ns[call.slice],
                          .end_ns = trace.slices.end_ns(call.slice)});
  }
  for (auto& [track, calls] : out) {
    std::sort(calls.begin(), calls.end(),
              [](const ModelCall& a, const ModelCall& b) { return a.start_ns < b.start_ns; });
  }
  return out;
}

ModelCall* call_at(CallsByThread& threads, TrackId track, std::int64_t time_ns) {
  const auto thread = threads.find(track);
  if (thread == threads.end()) return nullptr;
  std::vector<ModelCall>& calls = thread->second;
  auto after = std::upper_bound(calls.begin(), calls.end(), time_ns,
                                [](std::int64_t t, const ModelCall& call) { return t < call.start_ns; });
  if (after == calls.begin()) return nullptr;
  --after;
  return time_ns < after->end_ns ? &*after : nullptr;
}

std::vector<ModelCall> look_for_calls(const Case& about) {
  std::map<const Trace*, CallsByThread> all;
  for (const Trace& trace : timelines(about.run)) {
    if (CallsByThread threads = outermost_of(trace); !threads.empty()) all[&trace] = std::move(threads);
  }
  if (all.empty()) return {};
  for_each_work(about, [&](std::uint32_t node, const Work& work) {
    const auto threads = all.find(work.trace);
    if (threads == all.end()) return;
    const bool launched = work.device && work.inside != SliceId::none;
    const TrackId track = launched ? work.trace->slices.track[work.inside] : work.track;
    const std::int64_t at = launched ? work.trace->slices.start_ns[work.inside] : work.start_ns;
    if (ModelCall* call = call_at(threads->second, track, at)) call->nodes.push_back(node);
  });
  std::vector<ModelCall> out;
  for (const Trace& trace : timelines(about.run)) {
    const auto threads = all.find(&trace);
    if (threads == all.end()) continue;
    const Inputs& known = inputs(about);
    const Passes& pass = passes(about);
    for (std::size_t row = 0; row < trace.ops.size(); row++) {
      const SliceId slice = trace.ops.slice[row];
      if (about.outermost(trace, slice) != slice) continue;
      ModelCall* call = call_at(threads->second, trace.slices.track[slice], trace.slices.start_ns[slice]);
      if (call == nullptr) continue;
      // A table of words is given as a whole: behind it comes what is looked up there.
      const std::vector<Shape>& shapes = known.of(trace, slice).shapes;
      const std::string_view name = trace.name(slice);
      const std::size_t first = name == "aten::embedding" ? 1 : 0;
      const auto given = std::find_if(shapes.begin() + static_cast<std::ptrdiff_t>(std::min(first, shapes.size())),
                                      shapes.end(), [](const Shape& shape) { return !shape.sizes.empty(); });
      // A vector by itself, such as positions that are made in the call, is not what it is given if more comes; words
      // that are looked up are.
      if (given != shapes.end() && name.find("embedding_bag") == name.npos &&
          (call->sizes.empty() || (call->sizes.size() == 1 && !call->words && given->sizes.size() > 1))) {
        call->sizes = given->sizes;
        call->words = first > 0;
      }
      call->trains = call->trains || !pass.backward(trace, slice).empty();
      call->recorded = call->recorded || is_recorded(trace, row);
    }
    for (auto& [track, calls] : threads->second) {
      out.insert(out.end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
    }
  }
  return out;
}

}  // namespace

const std::vector<ModelCall>& model_calls(const Case& about) {
  return about.shared<std::vector<ModelCall>>(look_for_calls);
}

bool put_model(const Case& about, const Trace& trace, std::string_view module, Place& place) {
  const CodeCall* call = about.places.source(trace).first_call("(calls) " + std::string(module));
  if (call != nullptr) put_call(*call, place);
  place.module = std::string(module);
  return call != nullptr;
}

}  // namespace stepscope::diagnose
