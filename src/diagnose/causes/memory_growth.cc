// Work that grows from step to step: something is kept, and all of it is gone through again each time.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/marked_steps.h"
#include "diagnose/model_calls.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "diagnose/queries.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kFewestSteps = 3;

// Operators of a rank by name and by which of that name in its step.
using Turn = std::pair<std::string_view, std::size_t>;

// How much operators are given, or, where the profiler does not say that of a long list of tensors, how much memory
// they take for what they make of it.
class Given {
 public:
  explicit Given(const Trace& trace) : trace_(trace) {
    const MemoryEvents& memory = trace.memory;
    for (std::size_t row = 0; row < memory.size(); row++) {
      if (memory.bytes.has(row) && memory.bytes[row] > 0 && memory.bytes[row] < kMostBytes)
        taken_[memory.track[row]].push_back({memory.time_ns[row], memory.bytes[row]});
    }
    for (auto& [track, rows] : taken_) std::sort(rows.begin(), rows.end());
  }

  std::int64_t of(const Operator& one) const {
    const std::int64_t elements = one.inputs->elements();
    const bool is_list = !one.inputs->types.empty() && one.inputs->types[0] == "TensorList";
    const auto rows = taken_.find(trace_.slices.track[one.slice]);
    if (elements > 0 || !is_list || rows == taken_.end()) return elements;
    const std::int64_t start = trace_.slices.start_ns[one.slice], end = trace_.slices.end_ns(one.slice);
    std::int64_t bytes = 0;
    auto at = std::lower_bound(rows->second.begin(), rows->second.end(), std::pair{start, std::int64_t{0}});
    for (; at != rows->second.end() && at->first < end; ++at) bytes += at->second;
    return bytes;
  }

 private:
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 42;
  const Trace& trace_;
  std::map<TrackId, std::vector<std::pair<std::int64_t, std::int64_t>>> taken_;  // time, bytes
};

// Those that were given more in each step than in the one before.
std::set<SliceId> growing(const std::vector<Operator>& all, const Trace& trace) {
  std::map<StepId, std::map<std::string_view, std::vector<const Operator*>>> steps;
  for (const Operator& one : all) {
    if (one.trace == &trace && one.step != StepId::none) steps[one.step][one.name].push_back(&one);
  }
  for (auto at = steps.begin(); at != steps.end();)
    at = trace.steps[static_cast<std::size_t>(at->first)].partial ? steps.erase(at) : std::next(at);
  std::set<SliceId> out;
  if (steps.size() < kFewestSteps) return out;
  const Given given(trace);
  for (const auto& [name, turns] : steps.begin()->second) {
    for (std::size_t turn = 0; turn < turns.size(); turn++) {
      std::vector<const Operator*> same;
      for (const auto& [step, names] : steps) {
        const auto here = names.find(name);
        if (here == names.end() || here->second.size() != turns.size()) break;
        same.push_back(here->second[turn]);
      }
      if (same.size() != steps.size()) break;
      // By as much each time: what is kept grows by a step's worth. Lengths of batches differ as well, but not so.
      const std::int64_t more = given.of(*same[1]) - given.of(*same[0]);
      bool grows = more > 0;
      for (std::size_t i = 1; i < same.size(); i++) {
        grows = grows && given.of(*same[i]) - given.of(*same[i - 1]) == more;
      }
      if (!grows) continue;
      for (const Operator* one : same) out.insert(one->slice);
    }
  }
  return out;
}

// A recorded step without what grows.
double rest_of_step_ns(const Case& about, const Gathered& grown) {
  const simulate::StepWindow& window = about.now.window;
  const double step_ns = static_cast<double>(window.end_ns - window.start_ns) / static_cast<double>(about.steps);
  return std::max(1.0, step_ns * (1 - about.share(grown.time_ns())));
}

}  // namespace

Cause memory_growth_cause() {
  return {"memory_growth", "Work that grows with each step", [](const Case& about, std::vector<Diagnosis>& out) {
            const std::vector<Operator>& all = forward_operators(about);
            const Passes& pass = passes(about);
            Gathered grown(about);
            std::map<const Trace*, std::set<SliceId>> known;
            for (const Operator& one : all) {
              const auto [of, is_new] = known.try_emplace(one.trace);
              if (is_new) of->second = growing(all, *one.trace);
              if (!of->second.contains(one.slice)) continue;
              grown.add(pass.nodes(*one.trace, one.slice), one.name, 0, 0.05);
              // Behind the call its old memory is given back.
              for (const std::uint32_t node : one.after) grown.add(node, about.work(node), one.name, 0, 0.1);
            }
            std::optional<GrowingSteps> job = growing_steps(about);
            const bool early_are_marked = job.has_value();
            if (!job && grown.worth_saying()) job = grown_since_recorded(about);
            if (grown.names().empty() || (!grown.worth_saying() && !job)) return;
            // A model that only answers is given a word more with each call, and the next request begins anew.
            if (!job && !goes_back(about.trace) && !model_calls(about).empty()) return;
            out.push_back(grown.diagnosis(
                {.cause = "memory",
                 .sentence = "Operators get more to do with each step: what was kept before is gone through again",
                 .next = "Keep running sums in place of all values, or only the last so many; detach and move to the "
                         "CPU what is kept"}));
            if (!job) return;
            // Early in a job little has grown: what it costs the job as a whole, its marks know.
            Finding& finding = out.back().finding;
            finding.evidence.push_back(
                {.text = "Steps early on", .value = job->early_ns, .unit = Unit::ns, .query = marks_of_steps()});
            finding.evidence.push_back({.text = "Steps of the last quarter", .value = job->late_ns, .unit = Unit::ns});
            const auto usual = static_cast<double>(job->usual_ns);
            // What grows is early in a job in the caches, and a line through the marks leads too low: of what does not
            // grow the recording knows how long it takes.
            constexpr double kMoreOfRest = 1.15;
            const double rest_ns = rest_of_step_ns(about, grown);
            const auto early_ns = static_cast<double>(job->early_ns);
            // At best it is as much faster as what is left of a step always may be, but no faster than early steps
            // were, where these are marked.
            double at_best_ns = rest_at_best(about, std::max(0.0, 1 - rest_ns / usual)) * rest_ns;
            if (early_are_marked) at_best_ns = std::max(at_best_ns, std::min(early_ns, rest_ns));
            const double early = std::max(rest_ns, std::min(kMoreOfRest * rest_ns, early_ns));
            out.back().known_gain = Gain{.speedup_low = std::max(1.0, usual / early),
                                         .speedup_high = std::max(1.0, usual / at_best_ns),
                                         .step_ns = job->usual_ns,
                                         .binds = about.now.binds,
                                         .how = "from the marks of all steps"};
          }};
}

}  // namespace stepscope::diagnose::causes
