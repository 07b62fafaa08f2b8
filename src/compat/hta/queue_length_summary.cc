// queue_length_summary: how many launches wait on each stream. Every change of the length weighs the same, however long
// it lasted. Launches of graphs are not in HTA's list, so the work of graphs is not seen here.
#include "compat/compat.h"
#include "compat/hta/counters.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

Result<Answer> run_queue_length_summary(const Input& input) {
  Answer answer;
  Table out{.name = "queue_length_summary", .columns = {whole("rank", "Rank"), whole("stream", "Stream")}};
  add_describe_columns(out, "queue_length/");
  for (const EventTable& table : input.tables().ranks) {
    for (const QueueLine& line : queue_lengths(table)) {
      std::vector<double> lengths;
      for (const Point& point : line.points) lengths.push_back(point.value);
      out.rows.push_back({table.rank(), line.stream});
      add_describe_values(out.rows.back(), describe(std::move(lengths)));
    }
  }
  answer.tables.push_back(std::move(out));
  return answer;
}

}  // namespace

Analysis queue_length_summary_analysis() {
  return {"queue_length_summary", "How long are the queues of the streams?", run_queue_length_summary};
}

}  // namespace stepscope::compat::hta
