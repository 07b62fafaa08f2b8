#include "diagnose/communicating.h"

#include <algorithm>
#include <map>
#include <set>

#include "diagnose/passes.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

struct BackwardOf {
  std::int64_t end_ns = 0, passes = 0;
};

// When the backward passes of each step of a rank end, and how many there are: between two of them other operators run.
std::map<StepId, BackwardOf> backward_of(const Case& about, const Trace& trace) {
  std::map<StepId, BackwardOf> out;
  StepId last = StepId::none;
  bool inside = false;
  for (const Operation& one : about.operations(trace)) {
    const StepId step = trace.step_at(trace.slices.start_ns[one.slice]);
    if (step != last) inside = false;
    last = step;
    const bool backward = is_backward(trace.name(one.slice));
    if (backward) {
      BackwardOf& of = out[step];
      of.passes += inside ? 0 : 1;
      of.end_ns = std::max(of.end_ns, trace.slices.end_ns(one.slice));
    }
    // What hooks do for communication in a backward pass does not end it.
    const std::string_view name = trace.name(one.slice);
    const bool of_hooks = name.starts_with("c10d::") || name == "record_param_comms";
    if (!of_hooks) inside = backward;
  }
  return out;
}

Communicating look_at_communication(const Case& about) {
  Communicating out;
  const simulate::ReplayGraph& graph = about.predictor.graph();
  std::map<std::uint32_t, Collective> by_match;
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node) || graph.role[node] != simulate::NodeRole::communicate) continue;
    const std::uint32_t match = graph.match[node];
    if (match == simulate::kNone || match >= about.run.matches.size()) continue;
    by_match[match].nodes.push_back(node);
  }
  const std::map<StepId, BackwardOf> backward = backward_of(about, about.trace);
  std::vector<SliceId> calls;
  for (const Operation& one : about.operations(about.trace)) {
    const std::string_view name = about.trace.name(one.slice);
    // Hooks in the backward pass ask for it as well: then the program called backward().
    if (name.starts_with("c10d::") || is_backward(name)) calls.push_back(one.slice);
  }
  const auto number = static_cast<std::uint32_t>(&about.trace - about.run.traces.data());
  std::set<StepId> steps;
  for (auto& [match, one] : by_match) {
    const Match& row = about.run.matches.rows[match];
    one.match = match;
    one.kind = row.kind;
    one.bytes = row.bytes;
    for (const MatchMember& member : about.run.matches.of(match)) {
      if (member.trace != number) continue;
      // Of work on a device what asked for it: the host runs ahead of it.
      std::int64_t asked_ns = member.start_ns;
      if (member.device_row != MatchMember::kNone) {
        const SliceId launch = about.trace.device.launch[member.device_row];
        if (launch != SliceId::none) asked_ns = about.trace.slices.start_ns[launch];
      }
      one.step = about.trace.step_at(asked_ns);
      const auto of = backward.find(one.step);
      const auto after = std::upper_bound(calls.begin(), calls.end(), asked_ns, [&](std::int64_t t, SliceId call) {
        return t < about.trace.slices.start_ns[call];
      });
      if (after != calls.begin()) one.call = *(after - 1);
      // What a backward pass asks for may begin behind it, if the thread that communicates has no core before.
      const bool by_backward = one.call != SliceId::none && is_backward(about.trace.name(one.call));
      one.after_backward =
          one.step != StepId::none && of != backward.end() && asked_ns >= of->second.end_ns && !by_backward;
    }
    if (one.step != StepId::none && !about.trace.steps[static_cast<std::size_t>(one.step)].partial)
      steps.insert(one.step);
    out.collectives.push_back(std::move(one));
  }
  out.steps = static_cast<std::int64_t>(steps.size());
  for (const StepId step : steps) {
    if (const auto of = backward.find(step); of != backward.end()) out.backward_passes += of->second.passes;
  }
  return out;
}

bool asks(std::string_view operation) { return operation.starts_with("c10d::"); }

// Is such an operator around it, on the host?
template <class Is>
bool is_inside(const Work& work, const Is& is) {
  if (work.device || work.operation == SliceId::none) return false;
  for (SliceId at = work.inside; at != SliceId::none; at = work.trace->slices.parent[at]) {
    if (is(work.trace->name(at))) return true;
    if (at == work.operation) break;
  }
  return false;
}

}  // namespace

bool asks_to_reduce(const Work& work) {
  return is_inside(work, [](std::string_view name) { return asks(name) && name.find("allreduce") != name.npos; });
}

bool is_of_reducer(const Work& work) {
  return is_inside(work, [](std::string_view name) { return name.find("reducer::") != name.npos; });
}

std::vector<std::uint32_t> loops_of_calls(const Case& about) {
  constexpr std::size_t kFewestCalls = 8, kMostBetween = 4;
  std::vector<std::uint32_t> out;
  for (const Trace& trace : timelines(about.run)) {
    const std::vector<Operation> all = about.operations(trace);
    for (std::size_t i = 0; i < all.size(); i++) {
      if (!asks(trace.name(all[i].slice))) continue;
      const StepId step = trace.step_at(trace.slices.start_ns[all[i].slice]);
      std::size_t last = i, calls = 1;
      for (std::size_t k = i + 1; k < all.size() && k - last <= kMostBetween + 1; k++) {
        const std::string_view name = trace.name(all[k].slice);
        if (is_backward(name) || trace.step_at(trace.slices.start_ns[all[k].slice]) != step) break;
        if (!asks(name)) continue;
        last = k;
        calls++;
      }
      for (std::size_t k = i; calls >= kFewestCalls && k <= last; k++) {
        out.insert(out.end(), all[k].nodes.begin(), all[k].nodes.end());
        if (k < last) out.insert(out.end(), all[k].after.begin(), all[k].after.end());
      }
      i = last;
    }
  }
  return out;
}

void put_call(const Case& about, const Collective& one, Place& place) {
  place.op = std::string(to_string(one.kind));
  place.rank = about.trace.rank.rank;
  if (one.call == SliceId::none) return;
  place.t_ns = about.trace.slices.start_ns[one.call];
  about.code(about.trace, one.call).put_into(place);
}

const Communicating& communicating(const Case& about) { return about.shared<Communicating>(look_at_communication); }

}  // namespace stepscope::diagnose
