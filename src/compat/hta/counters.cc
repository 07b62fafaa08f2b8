#include "compat/hta/counters.h"

#include <algorithm>
#include <map>
#include <set>

#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

struct Change {
  double ts = 0, by = 0;
  std::int64_t stream = kNone;
  std::string_view kind;
  std::uint32_t index = 0;
};

// Changes in the order of their times, as HTA's sort leaves them (sort_order() in stats.h).
std::vector<Change> in_time(const std::vector<Change>& changes) {
  std::vector<double> times;
  times.reserve(changes.size());
  for (const Change& change : changes) times.push_back(change.ts);
  std::vector<Change> sorted;
  sorted.reserve(changes.size());
  for (const std::uint32_t at : sort_order(times)) sorted.push_back(changes[at]);
  return sorted;
}

void add(std::vector<Point>& line, const Change& change) {
  line.push_back({change.ts, (line.empty() ? 0 : line.back().value) + change.by, change.index});
}

double speed_of(const EventTable& table, const Row& row) {
  const CopySpeeds& speeds = table.trace().copy_speeds;
  const auto* const found = std::lower_bound(speeds.slice.begin(), speeds.slice.end(), static_cast<SliceId>(row.index));
  if (found == speeds.slice.end() || *found != static_cast<SliceId>(row.index)) return 0;
  return speeds.gb_per_s[static_cast<std::size_t>(found - speeds.slice.begin())];
}

}  // namespace

std::vector<QueueLine> queue_lengths(const EventTable& table) {
  const std::vector<Row> device = table.device_rows();
  std::multimap<std::int64_t, std::int64_t> stream_of;  // by correlation
  for (const Row& row : device) stream_of.emplace(row.correlation, row.stream);
  std::vector<Change> changes;
  std::set<std::int64_t> launched;
  for (const Row& row : table.rows()) {
    if (row.index_correlation <= 0 || !is_queue_launch(table.name(row))) continue;
    launched.insert(row.correlation);
    const auto [first, last] = stream_of.equal_range(row.correlation);
    for (auto it = first; it != last; ++it)
      changes.push_back({.ts = row.ts, .by = 1, .stream = it->second, .index = row.index});
  }
  for (const Row& row : device) {
    if (launched.count(row.correlation) > 0)
      changes.push_back({.ts = row.ts, .by = -1, .stream = row.stream, .index = row.index});
  }
  std::map<std::int64_t, std::vector<Point>> lines;
  for (const Change& change : in_time(changes)) add(lines[change.stream], change);
  std::vector<QueueLine> out;
  for (auto& [stream, points] : lines) out.push_back({stream, std::move(points)});
  return out;
}

std::vector<SpeedLine> copy_speeds(const EventTable& table) {
  std::vector<Change> changes, ends;
  for (const Row& row : table.device_rows()) {
    if (table.type(row) != KernelType::memory) continue;
    const double speed = speed_of(table, row);
    const std::string_view kind = memory_kind(table.name(row));
    changes.push_back({.ts = row.ts, .by = speed, .kind = kind});
    ends.push_back({.ts = row.ts + (row.dur == 0 ? 1 : row.dur), .by = -speed, .kind = kind});
  }
  changes.insert(changes.end(), ends.begin(), ends.end());
  std::map<std::string_view, std::vector<Point>> lines;
  for (const Change& change : in_time(changes)) add(lines[change.kind], change);
  std::vector<SpeedLine> out;
  for (auto& [kind, points] : lines) out.push_back({std::string(kind), std::move(points)});
  return out;
}

}  // namespace stepscope::compat::hta
