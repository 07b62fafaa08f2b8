#include "session/run_telemetry.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "run/samples.h"

namespace stepscope::session {
namespace {

constexpr std::int64_t kDriftWorthTelling = 10'000'000;  // ns: a tenth of the time between two samples

// Of "rank 7".
std::optional<std::int64_t> rank_of(std::string_view target) {
  constexpr std::string_view kRank = "rank ";
  std::int64_t rank = 0;
  if (!target.starts_with(kRank)) return {};
  target.remove_prefix(kRank.size());
  const auto read = std::from_chars(target.data(), target.data() + target.size(), rank);
  return read.ec == std::errc() && read.ptr == target.data() + target.size() ? std::optional(rank) : std::nullopt;
}

SampledSeries to_model(const run::SeriesAbout& about, const std::string& host) {
  return {.host = host,
          .collector = about.collector,
          .name = about.name,
          .target = about.target,
          .unit = about.unit,
          .rate_unit = run::rate_unit(about.unit),
          .meaning = about.meaning,
          .is_counter = about.kind == run::SeriesKind::counter,
          .rank = rank_of(about.target)};
}

void add_series(const run::Series& series, const std::string& host, Trace& to) {
  const auto number = static_cast<std::uint32_t>(to.sampled.size());
  to.sampled.push_back(to_model(series.about, host));
  const run::Sample* before = nullptr;
  for (const run::Sample& now : series.samples) {
    const bool has_rate = series.about.kind == run::SeriesKind::counter && before != nullptr;
    to.samples.series.push_back(number);
    to.samples.time_ns.push_back(now.t_ns);
    to.samples.value.push_back(now.value);
    to.samples.rate.push_back(has_rate ? run::rate_between(series.about, *before, now) : std::nan(""));
    before = &now;
  }
}

void tell(Run& run, const std::string& path, const char* code, Severity severity, std::string sentence,
          std::string advice, std::uint64_t count) {
  run.issues.push_back(
      {code, severity, std::move(sentence), std::move(advice), count, path, std::nullopt, std::nullopt});
}

void tell_losses(const run::Samples& samples, const std::string& path, Run& run) {
  if (samples.dropped > 0) {
    tell(run, path, "samples_overwritten", Severity::info,
         "the oldest " + std::to_string(samples.dropped) + " samples of telemetry made room for newer ones",
         "Sample less often, or with fewer collectors", samples.dropped);
  }
  if (samples.cut > 0) {
    tell(run, path, "samples_cut", Severity::lost,
         std::to_string(samples.cut) + " samples are missing: the file was cut short",
         "Copy it again, if it was copied", samples.cut);
  }
  if (samples.unknown > 0) {
    tell(run, path, "samples_unknown", Severity::lost,
         std::to_string(samples.unknown) + " samples are of series that nothing describes",
         "Keep the .series.jsonl beside it", samples.unknown);
  }
  if (samples.backwards > 0) {
    tell(run, path, "samples_backwards", Severity::info,
         std::to_string(samples.backwards) + " samples went back in time or count and were left out", "",
         samples.backwards);
  }
  if (std::abs(samples.drift_ns) >= kDriftWorthTelling) {
    tell(run, path, "clock_drift", Severity::info,
         "the wall clock moved by " + std::to_string(samples.drift_ns / 1'000'000) +
             " ms against the monotonic one while telemetry was sampled",
         "Both were read once a second, and each sample is placed by the newest pair", 1);
  }
}

}  // namespace

void read_telemetry(const std::string& run_folder, Run& run) {
  for (const std::string& path : run::sample_files(run_folder)) {
    auto samples = run::read_samples(path);
    if (!samples) {
      tell(run, path, "telemetry_damaged", Severity::lost, to_text(samples.error()), "", 1);
      continue;
    }
    tell_losses(*samples, path, run);
    Trace& trace = run.telemetry.emplace_back();
    trace.source = {.path = path, .format = std::string(kSampleFiles), .writer = "stepscope"};
    for (const run::Series& series : samples->series) add_series(series, samples->host, trace);
  }
}

}  // namespace stepscope::session
