// potential_stragglers: the ranks that start last in the communication kernel whose duration differs most over ranks.
//
// Only names that begin with ncclKernel count (today's are called ncclDevKernel), of at least 1 % of a mean step, and
// of each (rank, stream, step, name) the last one.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

constexpr double kLeastShare = 0.01;  // of a mean step

struct Kernel {
  std::int64_t rank, step;
  double start, duration;
};
using Kind = std::pair<std::int64_t, std::string_view>;  // stream and name
using Kernels = std::map<Kind, std::vector<Kernel>>;

struct Steps {
  double first = INFINITY, mean = 0;
};

Steps measure_steps(const Tables& tables) {
  Steps out;
  double last = -INFINITY;
  std::set<std::int64_t> steps;
  for (const EventTable& table : tables.ranks) {
    for (const Row& row : table.rows()) {
      if (row.iteration < 0) continue;
      steps.insert(row.iteration);
      out.first = std::min(out.first, row.ts);
      last = std::max(last, row.end());
    }
  }
  if (!steps.empty()) out.mean = (last - out.first) / static_cast<double>(steps.size());
  return out;
}

Kernels long_communication(const Tables& tables, const Steps& steps) {
  std::map<std::tuple<std::int64_t, std::string_view, std::int64_t, std::int64_t>, Kernel> last;
  for (const EventTable& table : tables.ranks) {
    for (const Row& row : table.rows()) {
      const bool wanted = row.stream > 0 && row.iteration > 0 && row.dur >= kLeastShare * steps.mean &&
                          table.name(row).starts_with("ncclKernel");
      if (wanted) {
        last[{row.stream, table.name(row), row.iteration, table.rank()}] = {
            table.rank(), row.iteration, (row.ts - steps.first) / steps.mean, row.dur / steps.mean};
      }
    }
  }
  Kernels kernels;
  for (const auto& [key, kernel] : last) kernels[{std::get<0>(key), std::get<1>(key)}].push_back(kernel);
  return kernels;
}

// Mean over the steps of the deviation over the ranks; NaN when no step has two ranks.
double spread(const std::vector<Kernel>& kernels) {
  std::map<std::int64_t, std::vector<double>> by_step;
  for (const Kernel& kernel : kernels) by_step[kernel.step].push_back(kernel.duration);
  std::vector<double> deviations;
  for (const auto& [step, durations] : by_step) {
    if (durations.size() > 1) deviations.push_back(deviation_of(durations));
  }
  return mean_of(deviations);
}

std::vector<Kernel> widest(const Kernels& kernels) {
  const std::vector<Kernel>* found = nullptr;
  double most = -INFINITY;
  for (const auto& [kind, of_kind] : kernels) {
    const double here = spread(of_kind);
    if (!std::isnan(here) && here > most) {
      most = here;
      found = &of_kind;
    }
  }
  return found == nullptr ? std::vector<Kernel>() : *found;
}

// How often each rank was among the `wanted` last ones of a step.
std::map<std::int64_t, std::int64_t> count_late(const std::vector<Kernel>& kernels, std::size_t wanted) {
  std::map<std::int64_t, std::vector<Kernel>> by_step;
  for (const Kernel& kernel : kernels) by_step[kernel.step].push_back(kernel);
  std::map<std::int64_t, std::int64_t> late;
  for (auto& [step, of_step] : by_step) {
    std::vector<double> starts;
    for (const Kernel& kernel : of_step) starts.push_back(kernel.start);
    std::sort(starts.rbegin(), starts.rend());
    const double limit = starts[std::min(wanted, starts.size()) - 1];
    for (const Kernel& kernel : of_step) late[kernel.rank] += kernel.start >= limit ? 1 : 0;
  }
  return late;
}

Result<Answer> run_potential_stragglers(const Input& input) {
  const auto wanted = static_cast<std::size_t>(std::max(1.0, input.number("num_candidates")));
  const Steps steps = measure_steps(input.tables());
  const auto late = count_late(widest(long_communication(input.tables(), steps)), wanted);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranks(late.begin(), late.end());
  std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  if (ranks.size() > wanted) ranks.resize(wanted);
  Table out{.name = "potential_stragglers",
            .columns = {whole("rank", "Rank"), whole("times", "Steps in which it was among the last")}};
  for (const auto& [rank, times] : ranks) out.rows.push_back({rank, times});
  Answer answer;
  if (out.rows.empty()) {
    answer.notes.emplace_back(
        "No rank is named: that takes profiler steps and two ranks with long kernels named ncclKernel…; HTA ends with "
        "a "
        "ValueError.");
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis potential_stragglers_analysis() {
  return {"potential_stragglers", "Which ranks make the others wait?", run_potential_stragglers};
}

}  // namespace stepscope::compat::hta
