#include "analyze/system/collectives.h"

#include <algorithm>
#include <array>

#include "model/answer_parts.h"

namespace stepscope::analyze::telemetry {
namespace {

constexpr double kSmallRate = 1e-3;  // bytes per ns: what is known to 1 MB/s is known
constexpr double kSecondNs = 1e9;

// The time in collectives and the rest of the recording, in Unix time; empty where the file does not tell that.
Kinds times_of(const Trace& trace) {
  Kinds kinds(2);
  if (trace.clock_base_ns == kAbsent || trace.collectives.size() == 0) return kinds;
  std::vector<Interval> inside;
  for (std::size_t row = 0; row < trace.collectives.size(); row++) {
    const SliceId slice = trace.collectives.slice[row];
    const std::int64_t start = trace.slices.start_ns[slice] + trace.clock_base_ns;
    inside.push_back({start, start + trace.slices.dur_ns[slice]});
  }
  Interval all{trace.slices.start_ns[0], trace.slices.start_ns[0]};
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const std::int64_t start = trace.slices.start_ns[row];
    all = {std::min(all.start, start), std::max(all.end, start + trace.slices.dur_ns[row])};
  }
  kinds[0] = make_intervals(std::move(inside));
  kinds[1] = subtract(std::array{Interval{all.start + trace.clock_base_ns, all.end + trace.clock_base_ns}}, kinds[0]);
  return kinds;
}

bool carries_data(const SampledSeries& series) {
  static constexpr std::array<std::string_view, 5> kCollectors{"network", "infiniband", "gpu", "bandwidth", "amd_gpu"};
  const bool is_one = std::find(kCollectors.begin(), kCollectors.end(), series.collector) != kCollectors.end();
  return is_one && series.is_counter && series.unit == "bytes";
}

// The samples around the recording: of a whole job all others say nothing.
CurveView around(CurveView samples, const Kinds& kinds) {
  Interval all{kinds[0].front().start, kinds[0].back().end};
  if (!kinds[1].empty()) {
    all = {std::min(all.start, kinds[1].front().start), std::max(all.end, kinds[1].back().end)};
  }
  const auto& t = samples.t_ns;
  const auto first = static_cast<std::size_t>(std::lower_bound(t.begin(), t.end(), all.start) - t.begin());
  const auto last = static_cast<std::size_t>(std::upper_bound(t.begin(), t.end(), all.end) - t.begin());
  return {t.subspan(first, last - first), samples.v.subspan(first, last - first)};
}

Value per_second(std::optional<double> per_ns) { return per_ns ? Value(*per_ns * kSecondNs) : Value(); }

}  // namespace

Table collectives_table(const Run& run, const std::vector<RankSystem>& ranks, Answer& answer) {
  Table table{.name = "collectives",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"target", ValueType::text, Unit::none, "Interface, port, GPU or memory of its machine"},
                          {"name", ValueType::text, Unit::none, "What was counted there"},
                          {"collective_ns", ValueType::integer, Unit::ns, "Recorded time in collectives"},
                          {"during_bytes_per_s", ValueType::real, Unit::bytes, "Per second while it was in one"},
                          {"otherwise_bytes_per_s", ValueType::real, Unit::bytes, "Per second in the rest"}},
              .rows = {}};
  const std::vector<Sampled> all = sampled_series(run);
  bool some = false;
  for (const Trace& trace : run.traces) {
    const auto rank =
        std::find_if(ranks.begin(), ranks.end(), [&](const RankSystem& one) { return one.rank == trace.rank.rank; });
    const Kinds kinds = times_of(trace);
    if (rank == ranks.end() || kinds[0].empty()) continue;
    for (const Sampled& one : all) {
      if (one.about->host != rank->host || !carries_data(*one.about)) continue;
      some = true;
      const auto rates = rates_by_kind(around(one.samples, kinds), kinds, {.small = kSmallRate});
      if (!rates[0] && !rates[1]) continue;
      table.rows.push_back({rank->rank, text(one.about->target), text(one.about->name), length(kinds[0]),
                            per_second(rates[0]), per_second(rates[1])});
    }
  }
  if (some && table.rows.empty()) {
    answer.notes.push_back(
        "The recorded collectives are too short for the time between two samples to tell what moved "
        "in them: record more steps, or sample more often (--telemetry default,network:5ms).");
  }
  return table;
}

}  // namespace stepscope::analyze::telemetry
