// queue_length_time_series: the points behind queue_length_summary.
#include "compat/compat.h"
#include "compat/hta/counters.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

Result<Answer> run_queue_length_time_series(const Input& input) {
  Answer answer;
  Table out{.name = "queue_length_time_series",
            .columns = {whole("rank", "Rank"), whole("stream", "Stream"),
                        number("ts", "us since the earliest event of all ranks"),
                        number("queue_length", "Launches waiting from then on")}};
  for (const EventTable& table : input.tables().ranks) {
    for (const QueueLine& line : queue_lengths(table)) {
      for (const Point& point : line.points) out.rows.push_back({table.rank(), line.stream, point.ts, point.value});
    }
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis queue_length_time_series_analysis() {
  return {"queue_length_time_series", "When do the queues of the streams grow and shrink?",
          run_queue_length_time_series};
}

}  // namespace stepscope::compat::hta
