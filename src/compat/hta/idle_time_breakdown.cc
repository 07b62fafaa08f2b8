// idle_time_breakdown: the gaps of each stream, by what came too late. host_wait: the launch call started after the
// gap did; kernel_wait: a gap shorter than consecutive_kernel_delay; other: the rest, and the first row of a stream,
// which has no gap. Overlaps are negative gaps and are summed as they are.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

constexpr std::array<std::string_view, 3> kCauses{"host_wait", "kernel_wait", "other"};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool is_device_work(const EventTable& table, const Row& row) {
  constexpr std::array<std::string_view, 7> work{"kernel",     "Kernel", "gpu_memset",     "Memset",
                                                 "gpu_memcpy", "Memcpy", "mtia_ccp_events"};
  return row.stream != kNone && std::find(work.begin(), work.end(), table.category(row)) != work.end();
}

// The gaps of one stream by cause; NaN for its first row.
std::array<std::vector<double>, 3> gaps(const EventTable& table, const std::vector<Row>& rows, double delay) {
  std::array<std::vector<double>, 3> by_cause;
  double previous_end = kNaN;
  for (const Row& row : by_start(rows)) {
    const Row* const launch = table.at(row.index_correlation);
    const double gap = row.ts - previous_end;
    const bool host = launch != nullptr && launch->ts > previous_end;
    by_cause[host ? 0 : gap < delay ? 1 : 2].push_back(gap);
    previous_end = row.end();
  }
  return by_cause;
}

double sum_of_known(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::isnan(value) ? 0 : value;
  return sum;
}

void add_stream(const EventTable& table, std::int64_t stream, const std::vector<Row>& rows, double delay, Table& idle,
                Table& stats) {
  const auto by_cause = gaps(table, rows, delay);
  double all = 0;
  for (const auto& values : by_cause) all += sum_of_known(values);
  for (std::size_t cause = 0; cause < kCauses.size(); cause++) {
    if (by_cause[cause].empty()) continue;
    const double sum = sum_of_known(by_cause[cause]);
    idle.rows.push_back(
        {table.rank(), stream, std::string(kCauses[cause]), rounded(sum, 2), real(rounded(sum / all, 2))});
    stats.rows.push_back({std::string(kCauses[cause]), table.rank(), stream});
    add_describe_values(stats.rows.back(), describe(by_cause[cause]), 2);
  }
}

Result<Answer> run_idle_time_breakdown(const Input& input) {
  Answer answer;
  Table idle{
      .name = "idle",
      .columns = {whole("rank", "Rank"), whole("stream", "Stream"), words("idle_category", "What was waited for"),
                  number("idle_time", "Sum of the gaps, us"), number("idle_time_ratio", "Of all gaps of the stream")}};
  Table stats{
      .name = "stats",
      .columns = {words("idle_category", "What was waited for"), whole("rank", "Rank"), whole("stream", "Stream")}};
  add_describe_columns(stats, "");
  for (const EventTable& table : input.tables().ranks) {
    std::vector<std::int64_t> streams;  // in order of first use
    std::vector<std::vector<Row>> rows;
    for (const Row& row : table.rows()) {
      if (!is_device_work(table, row)) continue;
      const auto known = std::find(streams.begin(), streams.end(), row.stream);
      if (known == streams.end()) {
        streams.push_back(row.stream);
        rows.push_back({row});
      } else {
        rows[static_cast<std::size_t>(known - streams.begin())].push_back(row);
      }
    }
    for (std::size_t i = 0; i < streams.size(); i++)
      add_stream(table, streams[i], rows[i], input.number("consecutive_kernel_delay"), idle, stats);
  }
  if (idle.rows.empty()) answer.notes.emplace_back("There is no device work; HTA ends with a ValueError.");
  answer.tables = {std::move(idle), std::move(stats)};
  return answer;
}

}  // namespace

Analysis idle_time_breakdown_analysis() {
  return {"idle_time_breakdown", "What do the streams wait for?", run_idle_time_breakdown};
}

}  // namespace stepscope::compat::hta
