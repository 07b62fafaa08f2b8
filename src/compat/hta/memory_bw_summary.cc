// memory_bw_summary: speeds of copies and fills by kind. Points weigh the same however long they lasted, and what
// rounding leaves over when the last copy has ended counts as a speed too.
#include "compat/compat.h"
#include "compat/hta/counters.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

Result<Answer> run_memory_bw_summary(const Input& input) {
  Answer answer;
  Table out{.name = "memory_bw_summary", .columns = {whole("rank", "Rank"), words("name", "Kind")}};
  add_describe_columns(out, "memory_bw_gbps/");
  for (const EventTable& table : input.tables().ranks) {
    for (const SpeedLine& line : copy_speeds(table)) {
      std::vector<double> speeds;
      for (const Point& point : line.points) {
        if (point.value > 0) speeds.push_back(point.value);
      }
      if (speeds.empty()) continue;
      out.rows.push_back({table.rank(), line.kind});
      add_describe_values(out.rows.back(), describe(std::move(speeds)));
    }
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis memory_bw_summary_analysis() {
  return {"memory_bw_summary", "How fast do copies and fills run?", run_memory_bw_summary};
}

}  // namespace stepscope::compat::hta
