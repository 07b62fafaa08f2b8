#include "timeline/counter_curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/intervals.h"
#include "model/allocations.h"
#include "model/track_stacks.h"

namespace stepscope::timeline {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
// A sampler that says nothing for so many of its usual intervals was away.
constexpr std::int64_t kMissed = 3;

using Points = std::vector<std::pair<std::int64_t, double>>;

// The values by time; of one instant the last. What comes after the last one is a gap.
void fill(CounterCurve& curve, Points points, std::int64_t end_ns) {
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  points.emplace_back(std::max(end_ns, points.empty() ? end_ns : points.back().first + 1), kGap);
  for (const auto& [time, value] : points) {
    const double shown = std::isfinite(value) ? value : kGap;
    if (!curve.start_ns.empty() && curve.start_ns.back() == time) {
      curve.value.back() = shown;
    } else {
      curve.start_ns.push_back(time);
      curve.value.push_back(shown);
    }
  }
}

class Counting {
 public:
  Counting(const Run& run, const Pyramids& pyramids, std::size_t most) : run_(run), pyramids_(pyramids), most_(most) {
    for (const auto& one : pyramids_) {
      const Trace& trace = one->trace();
      ends_.push_back(run_time_ns(trace, one->end_ns()));
      if (one->end_ns() == one->start_ns()) continue;
      span_ = {std::min(span_.start, run_time_ns(trace, one->start_ns())), std::max(span_.end, ends_.back())};
    }
  }

  void add_events(std::size_t rank) {
    const Trace& trace = pyramids_[rank]->trace();
    // Metrics of profiler ranges are of one kernel each and hold for nothing.
    std::set<std::pair<TrackId, StringId>> ranges;
    for (std::size_t i = 0; i < trace.slices.size() && trace.counters.size() > 0; i++) {
      if (trace.kind(static_cast<SliceId>(i)) != SliceKind::profiler_range) continue;
      ranges.emplace(trace.slices.track[i], trace.slices.name[i]);
    }
    std::map<std::tuple<TrackId, StringId, StringId>, Points> found;
    const Counters& counters = trace.counters;
    for (std::size_t row = 0; row < counters.size(); row++) {
      if (ranges.contains({counters.track[row], counters.name[row]})) continue;
      found[{counters.track[row], counters.name[row], counters.key[row]}].emplace_back(
          run_time_ns(trace, counters.time_ns[row]), counters.value[row]);
    }
    for (auto& [key, points] : found) {
      const auto& [track, name, part] = key;
      std::string label(trace.strings[name]);
      if (part != StringId::none && part != name) label.append(" · ").append(trace.strings[part]);
      const std::string group = track == TrackId::none ? "" : track_label(trace, static_cast<std::size_t>(track));
      add(rank, std::move(label), group, "", std::move(points));
    }
  }

  // As the answer memory has them, so that their peaks are its peaks.
  void add_memory(std::size_t rank) {
    const Trace& trace = pyramids_[rank]->trace();
    for (const DeviceMemory& memory : device_memories(trace)) {
      const std::string where = memory.type == 0 ? "CPU" : "device " + std::to_string(memory.index);
      const std::string_view since =
          memory.absolute ? "allocator"
                          : "allocator: since the recording began, on top of what the program said it held";
      const auto add_curve = [&](std::string_view what, std::string_view group, const Curve& curve) {
        if (std::all_of(curve.v.begin(), curve.v.end(), [](double value) { return value == 0; })) return;
        Points points;
        for (std::size_t i = 0; i < curve.size(); i++)
          points.emplace_back(run_time_ns(trace, curve.t_ns[i]), curve.v[i]);
        add(rank, where + ": bytes " + std::string(what), std::string(group), "bytes", std::move(points));
      };
      add_curve("allocated", since, memory.allocated);
      add_curve("reserved", "allocator", memory.reserved);
    }
  }

  void add_telemetry() {
    const std::vector<Sampled> all = sampled_series(run_);
    std::map<std::int64_t, std::string> hosts;  // of ranks
    for (const Sampled& one : all) {
      if (one.about->rank) hosts.try_emplace(*one.about->rank, one.about->host);
    }
    const bool several = std::any_of(all.begin(), all.end(),
                                     [&](const Sampled& one) { return one.about->host != all.front().about->host; });
    for (const Sampled& one : all) {
      const Trace* clock = clock_of(one.about->host, hosts);
      if (clock == nullptr) return;
      const auto to_run = [&](std::int64_t unix_ns) { return run_time_ns(*clock, unix_ns - clock->clock_base_ns); };
      Points points = sampled_points(one, to_run);
      const SampledSeries& about = *one.about;
      const std::string group = several ? about.target + " of " + about.host : about.target;
      const std::string name = about.target == "host" && !several ? about.name : group + " · " + about.name;
      add(CounterCurve::kNoRank, name, about.collector + ": " + about.meaning,
          about.is_counter ? about.rate_unit : about.unit, std::move(points));
    }
  }

  std::vector<CounterCurve> take(std::size_t& left_out) {
    left_out = left_out_;
    return std::move(curves_);
  }

 private:
  // A trace that tells Unix time: of a rank of this host, else any.
  const Trace* clock_of(const std::string& host, const std::map<std::int64_t, std::string>& hosts) const {
    const Trace* any = nullptr;
    for (const auto& one : pyramids_) {
      const Trace& trace = one->trace();
      if (trace.clock_base_ns == kAbsent) continue;
      const auto known = hosts.find(trace.rank.rank);
      if (known != hosts.end() && known->second == host) return &trace;
      if (any == nullptr) any = &trace;
    }
    return any;
  }

  template <class ToRun>
  Points sampled_points(const Sampled& one, const ToRun& to_run) const {
    const auto& times = one.samples.t_ns;
    std::vector<std::int64_t> between;
    for (std::size_t i = 1; i < times.size(); i++) between.push_back(times[i] - times[i - 1]);
    if (between.empty()) return {};  // one sample is no course over time
    std::nth_element(between.begin(), between.begin() + static_cast<std::ptrdiff_t>(between.size() / 2), between.end());
    const std::int64_t usual = std::max<std::int64_t>(between[between.size() / 2], 1);
    Points points;
    for (std::size_t i = 0; i + 1 < times.size(); i++) {
      const bool away = times[i + 1] - times[i] > kMissed * usual;
      if (one.about->is_counter) {  // the rate of a sample is of the time before it
        points.emplace_back(to_run(times[i]), away ? kGap : one.rate[i + 1]);
      } else {
        points.emplace_back(to_run(times[i]), one.samples.v[i]);
        if (away) points.emplace_back(to_run(times[i] + usual), kGap);
      }
    }
    if (!one.about->is_counter) {
      points.emplace_back(to_run(times.back()), one.samples.v.back());
      points.emplace_back(to_run(times.back() + usual), kGap);
    } else {
      points.emplace_back(to_run(times.back()), kGap);
    }
    return points;
  }

  void add(std::size_t rank, std::string name, std::string group, std::string unit, Points points) {
    const bool any = std::any_of(points.begin(), points.end(), [&](const auto& point) {
      return std::isfinite(point.second) && point.first < span_.end;
    });
    if (!any || (rank == CounterCurve::kNoRank && points.back().first < span_.start)) return;
    if (curves_.size() >= most_) {
      left_out_++;
      return;
    }
    CounterCurve curve{rank, std::move(name), std::move(group), std::move(unit), {}, {}};
    fill(curve, std::move(points), rank == CounterCurve::kNoRank ? span_.end : ends_[rank]);
    curves_.push_back(std::move(curve));
  }

  const Run& run_;
  const Pyramids& pyramids_;
  std::size_t most_, left_out_ = 0;
  std::vector<std::int64_t> ends_;  // of the timelines
  Interval span_{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  std::vector<CounterCurve> curves_;
};

}  // namespace

double CounterCurve::low() const {
  double low = std::numeric_limits<double>::infinity();
  for (const double one : value) low = one < low ? one : low;
  return low;
}

double CounterCurve::high() const {
  double high = -std::numeric_limits<double>::infinity();
  for (const double one : value) high = one > high ? one : high;
  return high;
}

void CounterCurve::query(std::int64_t from_ns, std::int64_t to_ns, std::int64_t merge_ns,
                         std::vector<CounterPoint>& out) const {
  merge_ns = std::max<std::int64_t>(merge_ns, 1);
  auto at = static_cast<std::size_t>(std::upper_bound(start_ns.begin(), start_ns.end(), from_ns) - start_ns.begin());
  at -= std::min<std::size_t>(at, 1);
  CounterPoint open;
  std::int64_t open_end = 0;  // values that begin before it belong to the open stretch
  bool any = false;
  for (; at < start_ns.size() && start_ns[at] < to_ns; at++) {
    const bool last = at + 1 == start_ns.size();
    const bool is_short = !last && start_ns[at + 1] - start_ns[at] < merge_ns;
    if (any && is_short && start_ns[at] < open_end) {
      if (std::isnan(value[at])) continue;
      open.low = std::isnan(open.low) ? value[at] : std::min(open.low, value[at]);
      open.high = std::isnan(open.high) ? value[at] : std::max(open.high, value[at]);
      continue;
    }
    if (any) out.push_back(open);
    open = {start_ns[at], value[at], value[at]};
    // A value that lasts stands alone.
    open_end = is_short ? (start_ns[at] / merge_ns + 1) * merge_ns : start_ns[at];
    any = true;
  }
  if (any) out.push_back(open);
}

std::vector<CounterCurve> counter_curves(const Run& run, const Pyramids& pyramids, std::size_t most,
                                         std::size_t& left_out) {
  Counting counting(run, pyramids, most);
  for (std::size_t rank = 0; rank < pyramids.size(); rank++) {
    counting.add_memory(rank);
    counting.add_events(rank);
  }
  counting.add_telemetry();
  return counting.take(left_out);
}

}  // namespace stepscope::timeline
