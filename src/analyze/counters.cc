// counters: counter tracks of the recording, and hardware metrics of CUPTI profiler ranges with the operators above
// them.
//
// A counter holds until its next value; means are weighted by time. Kineto measures profiler ranges (one a kernel)
// apart from the run and spreads their times evenly over the recording: such times say nothing. Then ranges and kernel
// launches are paired in order, and only where there are as many of one as of the other; else by time, where times are
// real.
#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/curves.h"
#include "model/host_names.h"
#include "model/lookup.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kMostSeries = 100;

struct CounterKey {
  TrackId track;
  StringId name, key;
  friend bool operator<(const CounterKey& a, const CounterKey& b) {
    return std::tie(a.track, a.name, a.key) < std::tie(b.track, b.name, b.key);
  }
};

struct Range {
  SliceId slice;
  SliceId op = SliceId::none;
  std::vector<std::pair<StringId, double>> metrics;
};

struct Measured {
  const Trace* trace = nullptr;
  std::map<CounterKey, Curve> counters;
  std::vector<Range> ranges;  // by start
  std::string_view pairing;
};

Measured collect(const Trace& trace) {
  Measured out{.trace = &trace};
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto id = static_cast<SliceId>(row);
    if (trace.kind(id) == SliceKind::profiler_range) out.ranges.push_back({.slice = id});
  }
  std::stable_sort(out.ranges.begin(), out.ranges.end(), [&](const Range& a, const Range& b) {
    return trace.slices.start_ns[a.slice] < trace.slices.start_ns[b.slice];
  });
  std::map<std::tuple<TrackId, std::int64_t, StringId>, std::size_t> at;
  for (std::size_t i = 0; i < out.ranges.size(); i++) {
    const SliceId id = out.ranges[i].slice;
    at[{trace.slices.track[id], trace.slices.start_ns[id], trace.slices.name[id]}] = i;
  }
  const Counters& counters = trace.counters;
  for (std::size_t row = 0; row < counters.size(); row++) {
    const auto range =
        at.empty() ? at.end() : at.find({counters.track[row], counters.time_ns[row], counters.name[row]});
    if (range != at.end()) {
      out.ranges[range->second].metrics.push_back({counters.key[row], counters.value[row]});
    } else {
      out.counters[{counters.track[row], counters.name[row], counters.key[row]}].add(counters.time_ns[row],
                                                                                     counters.value[row]);
    }
  }
  for (auto& [key, curve] : out.counters) {
    if (std::is_sorted(curve.t_ns.begin(), curve.t_ns.end())) continue;
    std::vector<std::pair<std::int64_t, double>> points;
    for (std::size_t i = 0; i < curve.size(); i++) points.push_back({curve.t_ns[i], curve.v[i]});
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    curve = {};
    for (const auto& [time, value] : points) curve.add(time, value);
  }
  return out;
}

// All of one length, one right behind the other: nobody measured these times.
bool spread_evenly(const Trace& trace, const std::vector<Range>& ranges) {
  if (ranges.size() < 3) return false;
  const std::int64_t width = trace.slices.dur_ns[ranges.front().slice];
  for (std::size_t i = 1; i < ranges.size(); i++) {
    const SliceId id = ranges[i].slice, before = ranges[i - 1].slice;
    const std::int64_t gap = trace.slices.start_ns[id] - trace.slices.end_ns(before);
    if (std::abs(trace.slices.dur_ns[id] - width) > 1'000 || std::abs(gap) > 1'000) return false;
  }
  return true;
}

std::vector<SliceId> kernel_launches(const Trace& trace) {
  std::vector<SliceId> calls;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const auto id = static_cast<SliceId>(row);
    if (trace.kind(id) == SliceKind::runtime && launch_kind(trace.name(id)) == LaunchKind::kernel) calls.push_back(id);
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [&](SliceId a, SliceId b) { return trace.slices.start_ns[a] < trace.slices.start_ns[b]; });
  return calls;
}

// The launch call with the largest part inside the range.
SliceId launch_in(const Trace& trace, const std::vector<SliceId>& calls, SliceId range) {
  const std::int64_t start = trace.slices.start_ns[range], end = trace.slices.end_ns(range);
  auto at = std::lower_bound(calls.begin(), calls.end(), start,
                             [&](SliceId call, std::int64_t time) { return trace.slices.start_ns[call] < time; });
  if (at != calls.begin() && trace.slices.end_ns(*std::prev(at)) > start) --at;
  SliceId best = SliceId::none;
  std::int64_t most = -1;
  for (; at != calls.end() && trace.slices.start_ns[*at] < end; ++at) {
    const std::int64_t part = std::min(end, trace.slices.end_ns(*at)) - std::max(start, trace.slices.start_ns[*at]);
    if (part > most) most = part, best = *at;
  }
  return best;
}

void find_ops(Measured& measured) {
  const Trace& trace = *measured.trace;
  if (measured.ranges.empty()) return;
  const std::vector<SliceId> calls = kernel_launches(trace);
  if (spread_evenly(trace, measured.ranges)) {
    if (calls.size() != measured.ranges.size()) {
      measured.pairing =
          "The times of the profiler ranges are made up (spread evenly over the recording), and there are not as many "
          "kernel launches as ranges: the operators above them are unknown.";
      return;
    }
    measured.pairing =
        "The times of the profiler ranges are made up (spread evenly over the recording); ranges and kernel launches "
        "are "
        "equally many and paired in their order.";
    for (std::size_t i = 0; i < calls.size(); i++) measured.ranges[i].op = op_around(trace, calls[i]);
    return;
  }
  measured.pairing =
      "A profiler range belongs to the kernel launch with the largest part of its time inside the range.";
  for (Range& range : measured.ranges) {
    const SliceId call = launch_in(trace, calls, range.slice);
    if (call != SliceId::none) range.op = op_around(trace, call);
  }
}

Table tracks_table(const std::vector<Measured>& ranks) {
  Table table{.name = "tracks",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"process", ValueType::text, Unit::none, "Process of the counter, as the trace spells it"},
                          {"name", ValueType::text, Unit::none, "Counter"},
                          {"key", ValueType::text, Unit::none, "Value of the counter"},
                          {"samples", ValueType::integer, Unit::count, "Values recorded"},
                          {"minimum", ValueType::real, Unit::none, "Lowest"},
                          {"mean", ValueType::real, Unit::none, "Mean, weighted by how long each value held"},
                          {"maximum", ValueType::real, Unit::none, "Highest"},
                          {"maximum_t_ns", ValueType::integer, Unit::ns, "When that was first reached"},
                          {"last", ValueType::real, Unit::none, "Last value"}}};
  for (const Measured& rank : ranks) {
    for (const auto& [key, curve] : rank.counters) {
      const CurveStats stats = stats_of(curve, curve.t_ns.back());
      const Track& track = rank.trace->tracks[static_cast<std::size_t>(key.track)];
      table.rows.push_back({rank.trace->rank.rank, text(rank.trace->strings[track.process]),
                            text(rank.trace->strings[key.name]), text(rank.trace->strings[key.key]),
                            count(curve.size()), stats.low, stats.mean, stats.high, stats.high_at_ns, curve.v.back()});
    }
  }
  return table;
}

Table metrics_table(const std::vector<Measured>& ranks) {
  Table table{.name = "metrics",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"kernel", ValueType::text, Unit::none, "Name of the profiler range: mostly a kernel"},
                          {"op", ValueType::text, Unit::none,
                           "Innermost operator or range around its launch; unknown: see the notes"},
                          {"metric", ValueType::text, Unit::none, "Hardware metric, as CUPTI names it"},
                          {"ranges", ValueType::integer, Unit::count, "Ranges that measured it"},
                          {"sum", ValueType::real, Unit::none, "Sum over them"},
                          {"mean", ValueType::real, Unit::none, "Mean over them"},
                          {"maximum", ValueType::real, Unit::none, "Highest"}}};
  struct Sum {
    std::int64_t ranges = 0;
    double sum = 0, high = -std::numeric_limits<double>::infinity();
  };
  for (const Measured& rank : ranks) {
    const Trace& trace = *rank.trace;
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, Sum> sums;
    for (const Range& range : rank.ranges) {
      for (const auto& [metric, value] : range.metrics) {
        Sum& sum = sums[{trace.name(range.slice), trace.strings[op_name(trace, range.op)], trace.strings[metric]}];
        sum.ranges++;
        sum.sum += value;
        sum.high = std::max(sum.high, value);
      }
    }
    for (const auto& [key, sum] : sums) {
      const auto& [kernel, op, metric] = key;
      table.rows.push_back({trace.rank.rank, text(kernel), text(op), text(metric), sum.ranges, sum.sum,
                            sum.sum / static_cast<double>(sum.ranges), sum.high});
    }
  }
  return table;
}

void add_series(Answer& answer, const Measured& rank) {
  for (const auto& [key, curve] : rank.counters) {
    if (answer.series.size() >= kMostSeries) {
      answer.notes.push_back("Series of the first " + std::to_string(kMostSeries) +
                             " counters only; the table tracks has all.");
      return;
    }
    const Trace& trace = *rank.trace;
    const Track& track = trace.tracks[static_cast<std::size_t>(key.track)];
    std::string name(trace.strings[key.name]);
    name.append("/").append(trace.strings[key.key]).append("_").append(trace.strings[track.process]);
    answer.series.push_back(thinned(name + "_rank" + std::to_string(trace.rank.rank), Unit::none, curve));
  }
}

constexpr std::string_view kNone = "The recording has no counters and no profiler ranges with hardware metrics.";

Result<Answer> run_counters(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  std::vector<Measured> ranks;
  std::int64_t counters = 0, ranges = 0;
  for (const Trace& trace : run.traces) {
    ranks.push_back(collect(trace));
    find_ops(ranks.back());
    counters += static_cast<std::int64_t>(ranks.back().counters.size());
    ranges += static_cast<std::int64_t>(ranks.back().ranges.size());
    if (!ranks.back().pairing.empty()) answer.notes.push_back(std::string(ranks.back().pairing));
  }
  const bool any = counters + ranges > 0;
  add_scalar(answer, "counter_count", value_if(any, counters), Unit::count,
             any ? "Counter tracks, of all ranks" : kNone);
  add_scalar(answer, "range_count", value_if(any, ranges), Unit::count,
             any ? "Profiler ranges with hardware metrics, of all ranks" : kNone);
  answer.tables = {tracks_table(ranks), metrics_table(ranks)};
  for (const Measured& rank : ranks) add_series(answer, rank);
  limit_rows(answer, answer.tables[0], options.max_rows, "further counters");
  limit_rows(answer, answer.tables[1], options.max_rows, "further metrics");
  if (!any) answer.notes.push_back(std::string(kNone));
  return answer;
}

}  // namespace

Analysis counters_analysis() { return {"counters", "What do counters and hardware metrics say?", run_counters}; }

}  // namespace stepscope::analyze
