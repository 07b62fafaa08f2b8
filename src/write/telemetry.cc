#include "write/telemetry.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "model/track_stacks.h"
#include "write/writer.h"

namespace stepscope::write {
namespace {

Track machine_track(Trace& trace, const std::string& host) {
  const StringId process = trace.strings.intern(std::string(kMachineProcess) + host);
  return {.process = process, .process_name = process};
}

// Appends a track without slices to a derived trace.
TrackId add_track(Trace& trace, const Track& track) {
  trace.tracks.push_back(track);
  if (!trace.track_begin.empty()) trace.track_begin.push_back(trace.track_begin.back());
  return static_cast<TrackId>(trace.tracks.size() - 1);
}

// The track on which most was done: its process is the rank.
TrackId busiest_track(const Trace& trace) {
  std::vector<std::size_t> slices(trace.tracks.size());
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    if (is_host_work(trace, static_cast<SliceId>(row))) slices[static_cast<std::size_t>(trace.slices.track[row])]++;
  }
  const auto most = std::max_element(slices.begin(), slices.end());
  return most == slices.end() || *most == 0 ? TrackId::none : static_cast<TrackId>(most - slices.begin());
}

// From the first start to the last end of all traces that tell the time, in Unix time; of none: all times.
Interval recorded_time(const Run& run) {
  constexpr Interval all{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  Interval when{all.end, all.start};
  for (const Trace& trace : run.traces) {
    if (trace.clock_base_ns == kAbsent) continue;
    for (std::size_t row = 0; row < trace.slices.size(); row++) {
      const std::int64_t start = trace.slices.start_ns[row] + trace.clock_base_ns;
      when = {std::min(when.start, start), std::max(when.end, start + trace.slices.dur_ns[row])};
    }
  }
  return when.start > when.end ? all : when;
}

class Placer {
 public:
  explicit Placer(Run& run) : run_(run), when_(recorded_time(run)) {
    for (const Trace& trace : run.traces) busiest_.push_back(busiest_track(trace));
    for (const Sampled& one : sampled_series(run)) {
      if (one.about->rank) hosts_.try_emplace(*one.about->rank, one.about->host);
    }
  }

  bool place(const Sampled& one) {
    const bool of_rank = one.about->rank.has_value();
    const auto at = of_rank ? trace_of(*one.about->rank) : std::nullopt;
    if (at && busiest_[*at] != TrackId::none) {
      Trace& trace = run_.traces[*at];
      if (trace.clock_base_ns == kAbsent) return false;
      add_samples(one, trace, busiest_[*at], one.about->name);
      return true;
    }
    const auto beside = trace_from(one.about->host);
    if (!beside) return false;
    Trace& trace = run_.traces[*beside];
    const std::string& target = one.about->target;  // what is of the host itself needs no further word
    add_samples(one, trace, machine_track_of(trace, *beside, one.about->host),
                target == "host" ? one.about->name : target + " " + one.about->name);
    return true;
  }

 private:
  std::optional<std::size_t> trace_of(std::int64_t rank) const {
    for (std::size_t i = 0; i < run_.traces.size(); i++) {
      if (run_.traces[i].rank.rank == rank) return i;
    }
    return std::nullopt;
  }

  // The first trace of a rank of this host, else the first of all that tell the time.
  std::optional<std::size_t> trace_from(const std::string& host) const {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < run_.traces.size(); i++) {
      if (run_.traces[i].clock_base_ns == kAbsent) continue;
      const auto known = hosts_.find(run_.traces[i].rank.rank);
      if (known != hosts_.end() && known->second == host) return i;
      if (!first) first = i;
    }
    return first;
  }

  TrackId machine_track_of(Trace& trace, std::size_t index, const std::string& host) {
    const auto [known, is_new] = machines_.try_emplace({index, host}, TrackId::none);
    if (is_new) known->second = add_track(trace, machine_track(trace, host));
    return known->second;
  }

  void add_samples(const Sampled& one, Trace& trace, TrackId track, const std::string& label) {
    const auto& t = one.samples.t_ns;
    auto first = static_cast<std::size_t>(std::lower_bound(t.begin(), t.end(), when_.start) - t.begin());
    auto last = static_cast<std::size_t>(std::upper_bound(t.begin(), t.end(), when_.end) - t.begin());
    first -= std::min<std::size_t>(first, 1);
    last = std::min(last + 1, t.size());
    const SampledSeries& about = *one.about;
    const StringId name = trace.strings.intern(label);
    const StringId key = trace.strings.intern(about.is_counter ? about.rate_unit : about.unit);
    for (std::size_t i = first; i < last; i++) {
      if (about.is_counter && i == first) continue;  // its rate held before
      const double value = about.is_counter ? one.rate[i] : one.samples.v[i];
      if (!std::isfinite(value)) continue;  // neither JSON nor a viewer has them
      trace.counters.time_ns.push_back(t[about.is_counter ? i - 1 : i] - trace.clock_base_ns);
      trace.counters.name.push_back(name);
      trace.counters.key.push_back(key);
      trace.counters.track.push_back(track);
      trace.counters.value.push_back(value);
    }
  }

  Run& run_;
  Interval when_;
  std::vector<TrackId> busiest_;               // of traces
  std::map<std::int64_t, std::string> hosts_;  // of ranks
  std::map<std::pair<std::size_t, std::string>, TrackId> machines_;
};

// The reader of a sampler's file made counters of it, by targets that viewers do not show; Run::telemetry has the same.
void drop_read_samples(Run& run) {
  for (Trace& trace : run.traces) {
    if (trace.source.format != kSampleFiles) continue;
    trace.counters = {};
    trace.tracks.clear();
    trace.track_begin.clear();
  }
}

}  // namespace

std::string add_telemetry(Run& run) {
  const std::vector<Sampled> all = sampled_series(run);
  if (all.empty()) return "";
  drop_read_samples(run);
  Placer placer(run);
  const auto left_out = std::count_if(all.begin(), all.end(), [&](const Sampled& one) { return !placer.place(one); });
  if (left_out == 0) return "";
  return std::to_string(left_out) + " of " + std::to_string(all.size()) +
         " series of telemetry are left out: the trace that they belong beside does not say when it was recorded "
         "(baseTimeNanoseconds); stepscope report --only system " +
         run.path + " shows them";
}

}  // namespace stepscope::write
