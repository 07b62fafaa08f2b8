#include <algorithm>
#include <map>
#include <tuple>

#include "compat/hta/critical_path_analysis/builder.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

struct Launch {
  const Row* call;
  const Row* work;
};

TrackId track_id_of(const EventTable& table, const Row& row) { return table.trace().slices.track[row.index]; }
StringId process_of(const EventTable& table, const Row& row) {
  return table.trace().tracks[static_cast<std::size_t>(track_id_of(table, row))].process;
}

// The row on a device that a call is linked to; nullptr where HTA's join finds none.
const Row* work_of(const EventTable& table, const Row& call) {
  const Row* const work = call.index_correlation > 0 ? table.at(call.index_correlation) : nullptr;
  return work != nullptr && work->stream != kNone && work->index_correlation > 0 ? work : nullptr;
}

template <class Wanted>
std::vector<const Row*> by_time(const EventTable& table, Wanted wanted) {
  std::vector<const Row*> rows;
  std::vector<double> times;
  for (const Row& row : table.rows()) {
    if (!wanted(row)) continue;
    rows.push_back(&row);
    times.push_back(row.ts);
  }
  std::vector<const Row*> sorted;
  for (const std::uint32_t at : sort_order(times)) sorted.push_back(rows[at]);
  return sorted;
}

std::vector<Launch> launches_by_time(const EventTable& table) {
  std::vector<Launch> launches;
  for (const Row* const call :
       by_time(table, [&](const Row& row) { return row.index_correlation > 0 && is_queue_launch(table.name(row)); })) {
    if (const Row* const work = work_of(table, *call)) launches.push_back({call, work});
  }
  return launches;
}

// Launches and other calls merged by time, launches first in the table that HTA sorts.
std::vector<std::size_t> merged_order(const std::vector<Launch>& launches, const std::vector<const Row*>& others) {
  std::vector<double> times;
  for (const Launch& launch : launches) times.push_back(launch.call->ts);
  for (const Row* const other : others) times.push_back(other->ts);
  const std::vector<std::uint32_t> order = sort_order(times);
  return {order.begin(), order.end()};
}

using DeviceStream = std::pair<StringId, std::int64_t>;

// Sync rows say which stream a recorded event belongs to.
std::map<std::int64_t, DeviceStream> recorded_streams(const EventTable& table) {
  const DeviceRows& device = table.trace().device;
  std::map<std::int64_t, DeviceStream> streams;
  for (std::size_t i = 0; i < device.size(); i++) {
    const auto index = static_cast<std::int64_t>(device.slice[i]);
    const Row* const row = table.at(index);
    if (row == nullptr || !device.wait_stream.has(i) || device.wait_stream[i] < 0) continue;
    const std::int64_t record = device.wait_correlation.has(i) ? device.wait_correlation[i] : kNone;
    streams.emplace(record, DeviceStream{process_of(table, *row), device.wait_stream[i]});
  }
  return streams;
}

void find_records(const EventTable& table, const std::vector<Launch>& launches, EventWaits& waits) {
  const auto streams = recorded_streams(table);
  const std::vector<const Row*> records = by_time(table, [&](const Row& row) {
    return table.name(row) == "cudaEventRecord" && streams.count(row.correlation) > 0;
  });
  std::map<DeviceStream, std::int64_t> last;  // launch so far
  for (const std::size_t at : merged_order(launches, records)) {
    if (at < launches.size()) {
      const Row& work = *launches[at].work;
      last[{process_of(table, work), work.stream}] = launches[at].call->index;
      continue;
    }
    const Row& record = *records[at - launches.size()];
    const auto launch = last.find(streams.at(record.correlation));
    if (launch != last.end()) waits.launch_before_record[record.correlation] = launch->second;
  }
}

void find_waits(const EventTable& table, const std::vector<Launch>& launches, EventWaits& waits) {
  const std::vector<const Row*> calls = by_time(table, [&](const Row& row) {
    return table.name(row) == "cudaStreamWaitEvent" && work_of(table, row) != nullptr;
  });
  std::map<std::pair<TrackId, std::int64_t>, std::int64_t> next;  // launch, seen from the end
  const std::vector<std::size_t> order = merged_order(launches, calls);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (*at < launches.size()) {
      const Launch& launch = launches[*at];
      next[{track_id_of(table, *launch.call), launch.work->stream}] = launch.call->index;
      continue;
    }
    const Row& call = *calls[*at - launches.size()];
    const auto launch = next.find({track_id_of(table, call), work_of(table, call)->stream});
    waits.launch_after_wait[call.index] = launch == next.end() ? kNone : launch->second;
  }
}

}  // namespace

EventWaits find_event_waits(const EventTable& table) {
  EventWaits waits;
  const std::vector<Launch> launches = launches_by_time(table);
  find_records(table, launches, waits);
  find_waits(table, launches, waits);
  return waits;
}

}  // namespace stepscope::compat::hta
