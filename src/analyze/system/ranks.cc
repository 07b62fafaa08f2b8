#include "analyze/system/ranks.h"

#include <algorithm>
#include <charconv>

namespace stepscope::analyze::telemetry {
namespace {

constexpr double kSecondNs = 1e9;
constexpr double kSmallPart = 0.05;  // of a core: what is known so well is known

double scaled(Form form, double per_ns) {
  constexpr double kMicro = 1e-6;  // energy is counted in uJ
  if (form == Form::watts) return per_ns * kSecondNs * kMicro;
  return form == Form::per_second ? per_ns * kSecondNs : per_ns;
}

// A mean of the time before its sample, as a counter: what it grew by since the sample before.
Curve integral_of(CurveView mean) {
  Curve out;
  double sum = 0;
  for (std::size_t i = 0; i < mean.size(); i++) {
    if (i > 0) sum += mean.v[i] * static_cast<double>(mean.t_ns[i] - mean.t_ns[i - 1]);
    out.add(mean.t_ns[i], sum);
  }
  return out;
}

void integrate_means(RankSystem& rank) {
  for (std::size_t m = 0; m < kMeasures.size(); m++) {
    if (kMeasures[m].form != Form::mean || rank.series[m].about == nullptr) continue;
    rank.integrals[m] = integral_of(rank.series[m].samples);
    rank.series[m].samples = rank.integrals[m];
  }
}

void take_phases(RankSystem& rank) {
  const Trace& trace = *rank.history;
  if (trace.steps.empty()) return;
  rank.steps = {trace.steps.front().start_ns, trace.steps.back().end_ns};
  std::vector<std::vector<Interval>> found(kPhases);
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const std::size_t phase = trace.slices.phase[row];
    const std::int64_t start = trace.slices.start_ns[row];
    if (phase != static_cast<std::size_t>(Phase::other))
      found[phase].push_back({start, start + trace.slices.dur_ns[row]});
  }
  std::vector<Interval> steps;
  for (const Step& step : trace.steps) steps.push_back({step.start_ns, step.end_ns});
  Intervals rest = make_intervals(std::move(steps));
  for (std::size_t phase = 0; phase < kPhases; phase++) {
    if (phase == static_cast<std::size_t>(Phase::other)) continue;
    rank.phases[phase] = intersect(make_intervals(std::move(found[phase])), rest);
    rest = subtract(rest, rank.phases[phase]);
  }
  rank.phases[static_cast<std::size_t>(Phase::other)] = std::move(rest);
  for (std::size_t phase = 0; phase < kPhases; phase++) rank.phase_ns[phase] = length(rank.phases[phase]);
}

void measure_phases(RankSystem& rank) {
  for (std::size_t m = 0; m < kMeasures.size(); m++) {
    if (rank.series[m].about == nullptr) continue;
    const CurveView samples = rank.series[m].samples;
    const bool is_level = kMeasures[m].form == Form::level;
    const bool is_part = kMeasures[m].form == Form::cores || kMeasures[m].form == Form::mean;
    const RateBounds bounds{.small = is_part ? kSmallPart : 0,
                            .most = m == kCores || m == kHostIdle ? rank.host_cores : kMeasures[m].most,
                            .late_ns = kMeasures[m].late_ms * 1'000'000};
    const auto found = is_level ? levels_by_kind(samples, rank.phases) : rates_by_kind(samples, rank.phases, bounds);
    for (std::size_t phase = 0; phase < kPhases; phase++) {
      if (found[phase]) rank.by_phase[phase][m] = is_level ? *found[phase] : scaled(kMeasures[m].form, *found[phase]);
    }
  }
}

// How many batches of the data loader a step takes, times their size, which the hooks noted.
void count_samples(RankSystem& rank) {
  const Trace& trace = *rank.history;
  std::int64_t size = 0;
  for (const Metadata& said : trace.metadata) {
    if (said.key == kBatchSize) std::from_chars(said.json.data(), said.json.data() + said.json.size(), size);
  }
  const auto& phase = trace.slices.phase;
  const auto batches = std::count(phase.begin(), phase.end(), static_cast<std::uint8_t>(Phase::dataloader));
  if (size <= 0 || batches == 0 || trace.steps.empty()) return;
  // One more than there are steps where the loader was asked for a batch after the last.
  const std::int64_t batches_per_step = std::max<std::int64_t>(1, batches / std::ssize(trace.steps));
  rank.samples_per_step = static_cast<double>(size * batches_per_step);
}

// "package 0", and "package 0 dram", which is none of its parts: "package 0 core" is.
bool is_processor(std::string_view target) {
  if (!target.starts_with("package ")) return false;
  const std::string_view part = target.substr(target.rfind(' ') + 1);
  return part == "dram" || part.find_first_not_of("0123456789") == part.npos;
}

bool is_of(const Sampled& one, Of of, const RankSystem& rank) {
  switch (of) {
    case Of::rank: return one.about->rank == rank.rank;
    case Of::its_gpu: return !rank.gpu.empty() && one.about->host == rank.host && one.about->target == rank.gpu;
    case Of::its_host: return one.about->host == rank.host && one.about->target == "host";
    case Of::its_processors: return one.about->host == rank.host && is_processor(one.about->target);
  }
  return false;
}

// GPUs of AMD are sampled by a collector of their own, under the same names.
bool is_from(const Sampled& one, std::string_view collector, std::string_view name) {
  const bool amd = one.about->collector == "amd_gpu" && collector == "gpu";
  return one.about->name == name && (one.about->collector == collector || amd);
}

// Of a rank that was started anew the longer series counts.
void take_longer(Sampled& known, const Sampled& other) {
  if (known.about == nullptr || known.samples.size() < other.samples.size()) known = other;
}

void take_series(const std::vector<Sampled>& all, RankSystem& rank) {
  rank.gpu = gpu_of_rank(all, rank.rank);
  for (const Sampled& one : all) {
    if (one.about->name == "online_cores" && one.about->host == rank.host) rank.host_cores = one.samples.v.back();
    for (std::size_t m = 0; m < kMeasures.size(); m++) {
      const Measure& measure = kMeasures[m];
      const bool fits = is_from(one, measure.collector, measure.name) && is_of(one, measure.of, rank);
      if (fits) take_longer(rank.series[m], one);
    }
    for (std::size_t a = 0; a < kAmounts.size(); a++) {
      const Amount& amount = kAmounts[a];
      if (!is_from(one, amount.collector, amount.name) || !is_of(one, amount.of, rank)) continue;
      std::vector<Sampled>& counters = rank.counters[a];
      const auto same = std::find_if(counters.begin(), counters.end(),
                                     [&](const Sampled& known) { return known.about->target == one.about->target; });
      take_longer(same != counters.end() ? *same : counters.emplace_back(), one);
    }
  }
}

}  // namespace

std::int64_t RankSystem::all_phases_ns() const {
  std::int64_t all = 0;
  for (const std::int64_t ns : phase_ns) all += ns;
  return all;
}

std::vector<RankSystem> ranks_of(const Run& run) {
  const std::vector<Sampled> all = sampled_series(run);
  std::vector<RankSystem> ranks;
  for (const Sampled& one : all) {
    const auto is_it = [&](const RankSystem& known) { return known.rank == *one.about->rank; };
    if (!one.about->rank || std::any_of(ranks.begin(), ranks.end(), is_it)) continue;
    RankSystem& rank = ranks.emplace_back();
    rank.rank = *one.about->rank;
    rank.host = one.about->host;
  }
  std::sort(ranks.begin(), ranks.end(), [](const RankSystem& a, const RankSystem& b) { return a.rank < b.rank; });
  for (RankSystem& rank : ranks) {
    take_series(all, rank);
    integrate_means(rank);
    const auto at = std::find_if(run.history.begin(), run.history.end(),
                                 [&](const Trace& trace) { return trace.rank.rank == rank.rank; });
    if (at == run.history.end()) continue;
    rank.history = &*at;
    take_phases(rank);
    measure_phases(rank);
    count_samples(rank);
  }
  return ranks;
}

std::optional<double> during(const RankSystem& rank, std::size_t measure, Interval when) {
  const Sampled& series = rank.series[measure];
  const Form form = kMeasures[measure].form;
  if (series.about == nullptr || when.end <= when.start) return {};
  if (form == Form::level) return level(series.samples, when);
  const auto grown = growth(series.samples, when);
  return grown ? std::optional(scaled(form, *grown / static_cast<double>(when.end - when.start))) : std::nullopt;
}

std::optional<double> used(const RankSystem& rank, std::size_t amount, Interval when) {
  if (rank.counters[amount].empty()) return {};
  double sum = 0;
  for (const Sampled& counter : rank.counters[amount]) {
    const auto grown = growth(counter.samples, when);
    if (!grown) return {};
    sum += *grown * kAmounts[amount].scale;
  }
  return sum;
}

Interval measured_time(const RankSystem& rank) {
  std::optional<Interval> reach;
  if (rank.steps.end > rank.steps.start) reach = rank.steps;
  for (const Sampled& series : rank.series) {
    if (series.about == nullptr || series.samples.size() < 2) continue;
    const Interval sampled{series.samples.t_ns.front(), series.samples.t_ns.back()};
    reach = reach ? Interval{std::max(reach->start, sampled.start), std::min(reach->end, sampled.end)} : sampled;
  }
  return reach.value_or(Interval{});
}

std::optional<double> per_step(const RankSystem& rank, std::size_t amount) {
  if (rank.history == nullptr) return {};
  double sum = 0;
  std::size_t known = 0;
  for (const Step& step : rank.history->steps) {
    const auto taken = used(rank, amount, {step.start_ns, step.end_ns});
    if (taken) sum += *taken, known++;
  }
  return known > 0 ? std::optional(sum / static_cast<double>(known)) : std::nullopt;
}

}  // namespace stepscope::analyze::telemetry
