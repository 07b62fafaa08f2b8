// A module that a step calls on the same input again: for another loss, for a metric, once per head.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/intervals.h"
#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/source.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

struct Again {
  const Source::Turn* said = nullptr;
  TrackId track = TrackId::none;
  Interval time;
  double part = 1;  // how often it is one
};

// Of a stretch of time without steps, as of a service: which of the calls it is cannot be told, only how many they are.
// Parts of modules that are mostly given something new are none.
std::map<std::string_view, Again> usual_of(const std::vector<Source::Turn>& said) {
  constexpr double kMostly = 0.5;
  constexpr std::size_t kFewest = 4, kMostLookedAt = 64;  // called_again.py
  std::map<std::string_view, std::pair<std::size_t, const Source::Turn*>> found;
  for (const Source::Turn& one : said) {
    auto& [count, first] = found[one.module];
    count++;
    if (first == nullptr) first = &one;
  }
  std::map<std::string_view, Again> out;
  for (const auto& [module, of] : found) {
    const auto& [count, first] = of;
    const double part = static_cast<double>(count) / static_cast<double>(std::min(first->count, kMostLookedAt));
    if (count >= kFewest && part >= kMostly) out[module] = {.said = first, .part = std::min(1.0, part)};
  }
  return out;
}

bool is_inside(const Trace& trace, SliceId slice, const std::set<SliceId>& modules) {
  SliceId above = trace.slices.parent[slice];
  while (above != SliceId::none && !modules.contains(above)) above = trace.slices.parent[above];
  return above != SliceId::none;
}

Again at(const Trace& trace, SliceId slice, Again one) {
  one.track = trace.slices.track[slice];
  one.time = {trace.slices.start_ns[slice], trace.slices.end_ns(slice)};
  return one;
}

// Of a stretch of time. A model that is called on one input alone is being timed, say; what a service makes again is
// part of a request.
std::vector<Again> of_stretch(const Trace& trace, const std::vector<Source::Turn>& said) {
  const std::map<std::string_view, Again> usual = usual_of(said);
  std::set<SliceId> modules;
  for (const ModuleCall& call : trace.modules) modules.insert(call.slice);
  std::vector<Again> out;
  for (const ModuleCall& call : trace.modules) {
    const auto found = usual.find(trace.strings[call.name]);
    if (found == usual.end() || !is_inside(trace, call.slice, modules)) continue;
    out.push_back(at(trace, call.slice, found->second));
  }
  return out;
}

// Those of the recorded steps that stand where the step with stacks has them.
std::vector<Again> of_steps(const Trace& trace, const std::vector<Source::Turn>& said) {
  std::map<std::pair<StepId, std::string_view>, std::vector<SliceId>> calls;
  for (const ModuleCall& call : trace.modules) {
    const StepId step = trace.step_at(trace.slices.start_ns[call.slice]);
    if (step != StepId::none) calls[{step, trace.strings[call.name]}].push_back(call.slice);
  }
  std::map<std::string_view, std::vector<const Source::Turn*>> by_module;
  for (const Source::Turn& one : said) by_module[one.module].push_back(&one);
  std::vector<Again> out;
  for (auto& [of, slices] : calls) {
    const auto again = by_module.find(of.second);
    if (again == by_module.end()) continue;
    std::sort(slices.begin(), slices.end(),
              [&](SliceId a, SliceId b) { return trace.slices.start_ns[a] < trace.slices.start_ns[b]; });
    for (const Source::Turn* one : again->second) {
      if (one->count == slices.size()) out.push_back(at(trace, slices[one->number - 1], {.said = one}));
    }
  }
  return out;
}

// None inside of another one.
std::vector<Again> calls_again(const Trace& trace, const std::vector<Source::Turn>& said) {
  std::vector<Again> all = has_steps(trace) ? of_steps(trace, said) : of_stretch(trace, said);
  // By thread and time, the longer one first: what is inside of another one goes along with it.
  std::sort(all.begin(), all.end(), [](const Again& a, const Again& b) {
    if (a.track != b.track) return a.track < b.track;
    return a.time.start != b.time.start ? a.time.start < b.time.start : a.time.end > b.time.end;
  });
  std::vector<Again> out;
  for (const Again& one : all) {
    const bool inside = !out.empty() && out.back().track == one.track && one.time.start < out.back().time.end;
    if (!inside) out.push_back(one);
  }
  return out;
}

const Again* call_at(const std::vector<Again>& calls, TrackId track, std::int64_t time_ns) {
  const auto after =
      std::upper_bound(calls.begin(), calls.end(), std::pair{track, time_ns}, [](const auto& at, const Again& call) {
        return at < std::pair{call.track, call.time.start};
      });
  if (after == calls.begin()) return nullptr;
  const Again& call = *(after - 1);
  return call.track == track && time_ns < call.time.end ? &call : nullptr;
}

// Does a call draw numbers? Then two of them do not give the same.
bool draws(const Trace& trace, const std::vector<Again>& calls) {
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    const SliceId slice = trace.ops.slice[row];
    if (!is_by_chance(trace.name(slice))) continue;
    if (call_at(calls, trace.slices.track[slice], trace.slices.start_ns[slice]) != nullptr) return true;
  }
  return false;
}

}  // namespace

Cause repeated_forward_cause() {
  return {
      "repeated_forward", "A module called on the same input again",
      [](const Case& about, std::vector<Diagnosis>& out) {
        constexpr double kUnshared = 0.05;
        std::map<const Trace*, std::vector<Source::Turn>> said;
        std::map<const Trace*, std::vector<Again>> again;
        for (const Trace& trace : timelines(about.run)) {
          const auto& own = said[&trace] = about.places.source(trace).called_again();
          if (!own.empty()) again[&trace] = calls_again(trace, own);
        }
        Gathered work_of(about);
        bool chance = false;
        for (const auto& [trace, calls] : again) chance = chance || draws(*trace, calls);
        std::set<std::pair<const Trace*, SliceId>> seen;  // outermost operators whose backward pass was added
        std::map<const Source::Turn*, std::int64_t> weight;
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          const auto found = again.find(work.trace);
          if (found == again.end()) return;
          const bool launched = work.device && work.inside != SliceId::none;
          const Again* call = launched ? call_at(found->second, work.trace->slices.track[work.inside],
                                                 work.trace->slices.start_ns[work.inside])
                                       : call_at(found->second, work.track, work.start_ns);
          if (call == nullptr) return;
          weight[call->said] += about.cost_ns(node);
          work_of.add(node, work, call->said->module, 1 - call->part, 1 - call->part * (1 - kUnshared));
          if (work.operation == SliceId::none || !seen.insert({work.trace, work.operation}).second) return;
          for (const std::uint32_t back : passes(about).backward_nodes(*work.trace, work.operation)) {
            work_of.add(back, about.work(back), call->said->module, 1 - call->part, 1 - call->part * (1 - kUnshared));
          }
        });
        work_of.add_outputs();
        if (weight.empty() || !work_of.worth_saying()) return;
        const bool in_steps = has_steps(about.trace);
        Diagnosis found = work_of.diagnosis(
            {.cause = "model",
             .sentence = in_steps ? "A step calls a module on the same input again, and its weights have not changed"
                                  : "A module is called on the same input again and again",
             .next = in_steps ? "Keep what the first call gives, and use it in both places"
                              : "Call it once for each input, and keep what it gives until the next one comes",
             .doubt = chance     ? "chance makes the two calls differ, as in dropout, which may be meant"
                      : in_steps ? "that the inputs are the same was seen in the step with stacks"
                                 : "how often the inputs are the same was seen where stacks were recorded"});
        const Source::Turn* most = std::max_element(weight.begin(), weight.end(), [](const auto& a, const auto& b) {
                                     return a.second < b.second;
                                   })->first;
        found.finding.where.op.reset();
        put_call(*most->call, found.finding.where);
        found.finding.where.module = std::string(most->module);
        found.finding.evidence.push_back({.text = "Calls of " + std::string(most->module) +
                                                  (in_steps ? " in a step" : " where stacks were recorded"),
                                          .value = static_cast<std::int64_t>(most->count),
                                          .unit = Unit::count});
        found.is_offer = chance;
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
