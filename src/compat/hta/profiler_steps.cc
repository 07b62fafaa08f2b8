// profiler_steps: the numbers of the profiler steps that are left after filtering.
#include <set>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

Result<Answer> run_profiler_steps(const Input& input) {
  std::set<std::int64_t> steps;
  for (const EventTable& table : input.tables().ranks) {
    for (const Row& row : table.rows()) {
      if (const std::int64_t step = profiler_step(table.name(row)); step >= 0) steps.insert(step);
    }
  }
  Table out{.name = "profiler_steps", .columns = {whole("step", "Number of the step")}};
  for (const std::int64_t step : steps) out.rows.push_back({step});
  Answer answer;
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis profiler_steps_analysis() { return {"profiler_steps", "Which profiler steps are there?", run_profiler_steps}; }

}  // namespace stepscope::compat::hta
