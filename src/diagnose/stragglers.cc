#include "diagnose/stragglers.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/intervals.h"
#include "diagnose/communicating.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"
#include "diagnose/operators.h"
#include "model/answer_parts.h"
#include "model/unrelated_files.h"

namespace stepscope::diagnose {
namespace {

struct Own {
  Straggler of;
  double elements = 0;
  std::size_t calls = 0;
  std::map<StepId, std::int64_t> steps;

  void add(const Work& work, std::int64_t cost_ns) {
    of.own_ns += cost_ns;
    if (const StepId step = work.trace->step_at(work.start_ns); step != StepId::none) steps[step] += cost_ns;
  }
};
using Ranks = std::map<const Trace*, Own>;

// When a rank communicates in threads of its host, clock of its file.
Intervals communicating_times(const Case& about, const Trace& trace) {
  std::vector<Interval> times;
  for_each_work(about, [&](std::uint32_t, const Work& work) {
    const bool communicates = work.role == simulate::NodeRole::communicate || work.role == simulate::NodeRole::arrival;
    if (work.trace != &trace || work.device || !communicates || work.slice == SliceId::none) return;
    times.push_back({trace.slices.start_ns[work.slice], trace.slices.end_ns(work.slice)});
  });
  return make_intervals(std::move(times));
}

// In each step that a rank shares with others: what it does itself, and what the busiest of these does.
struct AgainstOthers {
  std::int64_t own_ns = 0, busiest_ns = 0;
};

std::vector<AgainstOthers> against_others(const Ranks& ranks, const Trace* rank) {
  std::vector<AgainstOthers> out;
  for (const auto& [step, ns] : ranks.at(rank).steps) {
    std::optional<std::int64_t> busiest;
    for (const auto& [trace, one] : ranks) {
      const auto same = one.steps.find(step);
      if (trace != rank && same != one.steps.end()) busiest = std::max(busiest.value_or(0), same->second);
    }
    if (busiest) out.push_back({ns, *busiest});
  }
  return out;
}

// Always the same rank, or a different one by chance? What it does more in a step than the busiest of the others is, as
// a median, far more than that differs from step to step, and it is the one in nearly all of them. Or it has so much
// more in each that no chance would give it always to the same.
bool is_steady(const Ranks& ranks, const Trace* rank) {
  constexpr double kFarMore = 2;  // times the median distance from the median
  constexpr double kNearlyAll = 0.8;
  constexpr double kMuch = 0.5;  // of what the busiest of the others does
  constexpr std::size_t kFewest = 5;
  const std::vector<AgainstOthers> steps = against_others(ranks, rank);
  const bool always_much = std::all_of(steps.begin(), steps.end(), [](const AgainstOthers& step) {
    return step.busiest_ns > 0 && static_cast<double>(step.own_ns) > (1 + kMuch) * static_cast<double>(step.busiest_ns);
  });
  if (always_much && steps.size() >= kFewest) return true;
  std::vector<std::int64_t> more;
  for (const AgainstOthers& step : steps) more.push_back(step.own_ns - step.busiest_ns);
  const auto usual = median(more);
  if (!usual) return false;
  const auto later = std::count_if(more.begin(), more.end(), [](std::int64_t one) { return one > 0; });
  if (static_cast<double>(later) < kNearlyAll * static_cast<double>(more.size())) return false;
  for (std::int64_t& one : more) one = std::abs(one - *usual);
  return static_cast<double>(*usual) > kFarMore * static_cast<double>(*median(std::move(more)));
}

// Or in few of the steps, but far more in these, and no other rank does so in any: what it does every so often.
bool is_rare_but_large(const Ranks& ranks, const Trace* rank) {
  constexpr double kLarge = 0.5;  // of what the others do in a step
  const auto has_large = [&](const auto& one) {
    const std::vector<AgainstOthers> steps = against_others(ranks, one.first);
    return std::any_of(steps.begin(), steps.end(), [](const AgainstOthers& step) {
      return static_cast<double>(step.own_ns) > (1 + kLarge) * static_cast<double>(step.busiest_ns);
    });
  };
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const auto& one) { return has_large(one) == (one.first == rank); });
}

// What ranks do on the threads of their steps.
Ranks ranks_by_threads(const Case& about) {
  Ranks ranks;
  for (const simulate::StepWindow& window : about.predictor.windows()) {
    if (!window.whole_steps || window.lane == simulate::kNone) continue;
    const Trace& trace = about.run.traces[window.trace];
    Own& own = ranks[&trace];
    const Intervals communicates = communicating_times(about, trace);
    IntervalSweep sweep(communicates);
    for (const std::uint32_t node : about.predictor.graph().lanes[window.lane].nodes) {
      const std::int64_t start = about.predictor.graph().start_ns[node];
      if (start < window.start_ns || start >= window.end_ns) continue;
      const Work work = about.work(node);
      if (work.role == simulate::NodeRole::communicate || work.role == simulate::NodeRole::arrival) continue;
      // What a thread does beside its rank's communication, and is no operator, is to wait for it.
      std::int64_t cost_ns = work.cost_ns;
      if (work.between_operators()) {
        cost_ns -= sweep.part_of({work.start_ns, work.start_ns + work.cost_ns});
      }
      own.add(work, cost_ns);
      if (work.role == simulate::NodeRole::data_loader) continue;
      if (work.operation == SliceId::none) {
        own.of.code_ns += cost_ns;
        own.of.code.push_back(node);
      } else {
        own.of.operators.push_back(node);
      }
    }
  }
  return ranks;
}

// What their devices compute.
Ranks ranks_by_devices(const Case& about) {
  Ranks ranks;
  std::map<const Trace*, const simulate::StepWindow*> windows;
  for (const simulate::StepWindow& window : about.predictor.windows()) {
    if (window.whole_steps) windows[&about.run.traces[window.trace]] = &window;
  }
  for (const std::uint32_t node : device_work(about).nodes(DeviceClass::compute)) {
    const Work work = about.work(node);
    const auto window = windows.find(work.trace);
    const std::int64_t start = about.predictor.graph().start_ns[node];
    if (window == windows.end() || start < window->second->start_ns || start >= window->second->end_ns) continue;
    Own& own = ranks[work.trace];
    own.of.on_device = true;
    own.add(work, work.cost_ns);
    own.of.operators.push_back(node);
  }
  return ranks;
}

std::optional<Straggler> straggler_of(const Case& about, Ranks ranks) {
  if (ranks.size() < 2) return std::nullopt;
  for (const Operator& one : forward_operators(about)) {
    const auto of = ranks.find(one.trace);
    if (of == ranks.end() || one.step == StepId::none || one.phase == Phase::optimizer) continue;
    of->second.elements += static_cast<double>(one.inputs->elements());
    of->second.calls++;
  }
  auto most = ranks.begin();
  for (auto at = ranks.begin(); at != ranks.end(); ++at) {
    if (at->second.of.own_ns > most->second.of.own_ns) most = at;
  }
  std::vector<std::int64_t> own, code;
  std::vector<double> data, calls, kernels;
  for (const auto& [trace, one] : ranks) {
    if (trace == most->first) continue;
    own.push_back(one.of.own_ns);
    code.push_back(one.of.code_ns);
    data.push_back(one.elements);
    calls.push_back(static_cast<double>(one.calls));
    kernels.push_back(static_cast<double>(one.of.operators.size()));
  }
  const auto middle = [](auto values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  const bool steady = is_steady(ranks, most->first);
  if (!steady && (most->second.of.on_device || !is_rare_but_large(ranks, most->first))) return std::nullopt;
  Straggler out = std::move(most->second.of);
  out.steady = steady;
  out.trace = most->first;
  out.others_ns = middle(own);
  out.others_code_ns = middle(code);
  // Where it calls more operators than the others it does something else, and not the same on more data.
  constexpr double kSameCalls = 0.05;
  const auto as_many = [](std::size_t own_calls, double others) {
    return std::abs(static_cast<double>(own_calls) - others) <= kSameCalls * others;
  };
  const bool same_calls = as_many(most->second.calls, middle(calls));
  // A device that runs more kernels does more, and is not slower.
  if (out.on_device && !as_many(out.operators.size(), middle(kernels))) return std::nullopt;
  if (same_calls && middle(data) > 0) out.more_data = most->second.elements / middle(data);
  if (about.share(out.own_ns - out.others_ns) < kWorthSaying) return std::nullopt;
  return out;
}

std::vector<Straggler> look_for_stragglers(const Case& about) {
  std::vector<Straggler> out;
  if (about.predictor.windows().size() < 2) return out;
  // Files of several jobs: what one of them does longer the others do not wait for.
  const std::vector<Issue>& issues = about.run.issues;
  if (std::any_of(issues.begin(), issues.end(), [](const Issue& one) { return one.code == kUnrelatedFiles; }))
    return out;
  // Stages of a pipeline are not meant to do the same.
  const std::vector<Collective>& all = communicating(about).collectives;
  if (std::any_of(all.begin(), all.end(), [](const Collective& one) { return one.kind == CollectiveKind::send; })) {
    return out;
  }
  if (auto found = straggler_of(about, ranks_by_threads(about))) out.push_back(*std::move(found));
  if (auto found = straggler_of(about, ranks_by_devices(about))) out.push_back(*std::move(found));
  return out;
}

}  // namespace

const std::vector<Straggler>& stragglers(const Case& about) {
  return about.shared<std::vector<Straggler>>(look_for_stragglers);
}

}  // namespace stepscope::diagnose
