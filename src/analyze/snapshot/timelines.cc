// Bytes by category over time, as torch's profiler found them: the categories are its own, not ours.
#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "model/curves.h"
#include "snapshot/byte_sums.h"

namespace stepscope::analyze::device_memory {
namespace {

using snapshot::plus;
using Levels = std::array<std::int64_t, kTimelineCategories>;

std::int64_t sum_of(const Levels& levels) {
  return std::accumulate(levels.begin(), levels.end(), std::int64_t{0}, plus);
}

struct Timeline {
  Levels first{}, peak{}, most{}, last{};  // before the recording, at the peak of all, of each by itself, at the end
  std::int64_t peak_bytes = 0, peak_ns = kAbsent;
  std::array<Curve, kTimelineCategories> curves;
  Curve all;
};

// Changes of one moment come together: between them a tensor is in no category.
Timeline walked(const MemoryTimeline& rows) {
  std::vector<std::uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return rows.time_ns[a] < rows.time_ns[b]; });
  Timeline out;
  Levels now{};
  for (std::size_t i = 0; i < order.size();) {
    const std::int64_t time = rows.time_ns[order[i]];  // absent is before all others
    for (; i < order.size() && rows.time_ns[order[i]] == time; i++) {
      std::int64_t& level = now[rows.category[order[i]] % kTimelineCategories];
      level = plus(level, rows.bytes[order[i]]);
    }
    if (time == kAbsent) out.first = now;
    for (std::size_t c = 0; c < kTimelineCategories; c++) {
      out.most[c] = std::max(out.most[c], now[c]);
      if (time != kAbsent) out.curves[c].add(time, static_cast<double>(now[c]));
    }
    const std::int64_t sum = sum_of(now);
    if (time != kAbsent) out.all.add(time, static_cast<double>(sum));
    if (sum > out.peak_bytes) out.peak_bytes = sum, out.peak = now, out.peak_ns = time;
  }
  out.last = now;
  return out;
}

Table timeline_table() {
  return {.name = "timeline",
          .columns = {{"snapshot", ValueType::integer, Unit::none, "Number of the file in the run"},
                      {"rank", ValueType::integer, Unit::none, "Rank of the process"},
                      {"category", ValueType::text, Unit::none, "What it is for, in our words"},
                      {"recorded_as", ValueType::text, Unit::none, "The profiler's category"},
                      {"at_peak_bytes", ValueType::integer, Unit::bytes, "Alive at the peak of all"},
                      {"share", ValueType::real, Unit::ratio, "Share of that peak"},
                      {"most_bytes", ValueType::integer, Unit::bytes, "Most of it by itself"},
                      {"first_bytes", ValueType::integer, Unit::bytes, "There before the recording"},
                      {"last_bytes", ValueType::integer, Unit::bytes, "Alive at the end"}},
          .rows = {}};
}

void add_rows(Table& table, std::int64_t number, const Trace& trace, const Timeline& timeline) {
  std::array<std::size_t, kTimelineCategories> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return timeline.peak[a] > timeline.peak[b]; });
  for (const std::size_t c : order) {
    if (timeline.most[c] == 0 && timeline.last[c] == 0) continue;
    table.rows.push_back({number, trace.rank.rank, text(to_string(timeline_category(c))),
                          text(timeline_category_name(c)), timeline.peak[c],
                          share(timeline.peak[c], timeline.peak_bytes), timeline.most[c], timeline.first[c],
                          timeline.last[c]});
  }
}

void add_series(Answer& answer, std::int64_t number, const Trace& trace, const Timeline& timeline) {
  const auto add = [&](const Curve& curve, std::string_view name) {
    if (curve.size() == 0 || std::all_of(curve.v.begin(), curve.v.end(), [](double v) { return v == 0; })) return;
    Series series = thinned("timeline" + std::to_string(number) + "_" + std::string(name), Unit::bytes, curve);
    series.metric = "memory by category";
    series.target = std::string(name);
    series.ranks = {trace.rank.rank};
    answer.series.push_back(std::move(series));
  };
  for (std::size_t c = 0; c < kTimelineCategories; c++) add(timeline.curves[c], timeline_category_name(c));
  add(timeline.all, "all");
}

}  // namespace

void add_timelines(Parts& parts) {
  Table table = timeline_table();
  std::int64_t highest = -1;
  Value when;
  for (std::size_t i = 0; i < parts.run.snapshots.size(); i++) {
    const Trace& trace = parts.run.snapshots[i];
    if (trace.memory_timeline.size() == 0) continue;
    const Timeline timeline = walked(trace.memory_timeline);
    add_rows(table, static_cast<std::int64_t>(i), trace, timeline);
    add_series(parts.answer, static_cast<std::int64_t>(i), trace, timeline);
    if (timeline.peak_bytes > highest) highest = timeline.peak_bytes, when = present(timeline.peak_ns);
  }
  if (highest < 0) return;
  add_scalar(parts.answer, "timeline_peak_bytes", highest, Unit::bytes,
             "Most held at once by the profiler's memory timeline");
  add_scalar(parts.answer, "timeline_peak_t_ns", when, Unit::ns, "When it was first reached, on the profiler's clock");
  parts.answer.notes.push_back(
      "Categories of a memory timeline are those that torch's profiler found; AUTOGRAD_DETAIL counts as temporary "
      "here.");
  parts.answer.tables.push_back(std::move(table));
}

}  // namespace stepscope::analyze::device_memory
