// temporal_breakdown: idle, computing and other time between the first start and the last end of device rows. Waits
// (cuda_sync rows) count as busy here, as HTA has it.
#include "compat/compat.h"
#include "compat/hta/stats.h"
#include "compat/hta/unions.h"

namespace stepscope::compat::hta {
namespace {

Result<Answer> run_temporal_breakdown(const Input& input) {
  Answer answer;
  Table out{.name = "temporal_breakdown",
            .columns = {whole("rank", "Rank"), number("idle_time(us)", "No device row runs"),
                        number("compute_time(us)", "Union of computation"), number("non_compute_time(us)", "The rest"),
                        number("kernel_time(us)", "First start to last end"),
                        number("idle_time_pctg", "Of kernel_time, in percent"),
                        number("compute_time_pctg", "Of kernel_time, in percent"),
                        number("non_compute_time_pctg", "Of kernel_time, in percent")}};
  for (const EventTable& table : input.tables().ranks) {
    const std::vector<Row> device = table.device_rows();
    const std::vector<Span> busy = merged(device);
    if (busy.empty()) {
      answer.notes.push_back("Rank " + std::to_string(table.rank()) +
                             " has no device rows and no row here; HTA ends with an IndexError.");
      continue;
    }
    const double all = busy.back().end - busy.front().start;
    const double idle = all - total(busy);
    const double compute = total(merged(of_type(table, device, KernelType::computation)));
    const double rest = all - compute - idle;
    const auto percent = [&](double part) { return real(rounded(100 * (part / all), 2)); };
    out.rows.push_back({table.rank(), idle, compute, rest, all, percent(idle), percent(compute), percent(rest)});
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis temporal_breakdown_analysis() {
  return {"temporal_breakdown", "How much of the device time is idle, computation, or neither?",
          run_temporal_breakdown};
}

}  // namespace stepscope::compat::hta
