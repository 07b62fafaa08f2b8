// memory_bw_time_series: the points behind memory_bw_summary.
#include "compat/compat.h"
#include "compat/hta/counters.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

Result<Answer> run_memory_bw_time_series(const Input& input) {
  Answer answer;
  Table out{.name = "memory_bw_time_series",
            .columns = {whole("rank", "Rank"), words("name", "Kind"),
                        number("ts", "us since the earliest event of all ranks"),
                        number("memory_bw_gbps", "Speed from then on, GB/s")}};
  for (const EventTable& table : input.tables().ranks) {
    for (const SpeedLine& line : copy_speeds(table)) {
      for (const Point& point : line.points) out.rows.push_back({table.rank(), line.kind, point.ts, point.value});
    }
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis memory_bw_time_series_analysis() {
  return {"memory_bw_time_series", "When are memory copies and fills running, and how fast?",
          run_memory_bw_time_series};
}

}  // namespace stepscope::compat::hta
