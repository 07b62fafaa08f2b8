// time_spent_blocked_on_full_queue: how long a queue was full. HTA keeps one line per rank, and streams overwrite each
// other: the one left is the last that was ever full. The table all_streams says what the others were.
#include <optional>

#include "compat/compat.h"
#include "compat/hta/counters.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

std::vector<TableColumn> columns() {
  return {whole("rank", "Rank"), whole("stream", "Stream"),
          number("duration_at_max_queue_length", "Time with max_queue_length launches or more, us"),
          number("relative_duration_at_max_queue_length", "Of the time from first to last start")};
}

// Unknown: the queue was never full.
std::optional<double> full_time(const QueueLine& line, double full) {
  std::optional<double> time;
  for (std::size_t i = 0; i < line.points.size(); i++) {
    if (line.points[i].value < full) continue;
    time = time.value_or(0) + (i + 1 < line.points.size() ? line.points[i + 1].ts - line.points[i].ts : 0);
  }
  return time;
}

Result<Answer> run_time_spent_blocked_on_full_queue(const Input& input) {
  Answer answer;
  Table literal{.name = "time_spent_blocked_on_full_queue", .columns = columns()};
  Table all{.name = "all_streams", .columns = columns()};
  for (const EventTable& table : input.tables().ranks) {
    const std::size_t before = all.rows.size();
    for (const QueueLine& line : queue_lengths(table)) {
      const auto time = full_time(line, input.number("max_queue_length"));
      if (time) all.rows.push_back({table.rank(), line.stream, *time, real(*time / table.duration())});
    }
    if (all.rows.size() > before) literal.rows.push_back(all.rows.back());
  }
  answer.tables = {std::move(literal), std::move(all)};
  return answer;
}

}  // namespace

Analysis time_spent_blocked_on_full_queue_analysis() {
  return {"time_spent_blocked_on_full_queue", "For how long were the queues of the streams full?",
          run_time_spent_blocked_on_full_queue};
}

}  // namespace stepscope::compat::hta
