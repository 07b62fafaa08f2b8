// Reader of the telemetry that `stepscope run` and `stepscope monitor` sample (telemetry/HOST_PID.samples): each series
// a counter track, for what no trace was recorded beside it. Counters become the rate since the sample before.
#include "run/samples.h"
#include "read/reader.h"
#include "read/trace_rows.h"

namespace stepscope::read {
namespace {

bool recognizes(std::string_view head) { return head.starts_with(run::kSamplesFormat.magic); }

void add_series(const run::Series& series, const std::string& host, TraceRows& rows) {
  const run::SeriesAbout& about = series.about;
  const TrackId track = rows.lane(host, about.target);
  const bool counter = about.kind == run::SeriesKind::counter;
  const StringId name = rows.text(about.name), key = rows.text(counter ? run::rate_unit(about.unit) : about.unit);
  for (std::size_t i = counter ? 1 : 0; i < series.samples.size(); i++) {
    const run::Sample& now = series.samples[i];
    if (!counter) {
      rows.add_counter(now.t_ns, name, key, track, now.value);
      continue;
    }
    const run::Sample& before = series.samples[i - 1];  // earlier: run::read_samples leaves out what went back
    rows.add_counter(before.t_ns, name, key, track, run::rate_between(about, before, now));
  }
}

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions&) {
  const Result<run::Samples> samples = run::read_samples(path);
  if (!samples) return fail(samples.error());
  TraceRows rows(path);
  rows.trace.source = {.path = path, .format = std::string(kSampleFiles), .writer = "stepscope"};
  rows.trace.clock_base_ns = 0;  // times are Unix time
  rows.trace.source.file_bytes = rows.trace.source.text_bytes = samples->file_bytes;
  for (const run::Series& series : samples->series) {
    rows.trace.source.events += series.samples.size();
    add_series(series, samples->host, rows);
  }
  if (samples->series.empty()) rows.note("no_samples", Severity::info, "nothing was sampled", "Look at hooks.log");
  rows.note_repaired_texts();
  std::vector<Trace> traces;
  traces.push_back(std::move(rows.trace));
  return traces;
}

Result<std::vector<std::string>> no_text(const Trace& trace, std::span<const std::uint64_t>) {
  return fail({ErrorKind::unsupported, "samples are no text and have no arguments", trace.source.path, std::nullopt,
               "Use the columns of the table counters"});
}

}  // namespace

Reader samples_reader() {
  return {kSampleFiles, "Telemetry that stepscope run and monitor sample (.samples)", recognizes, read_file, no_text};
}

}  // namespace stepscope::read
