#include "session/report_inputs.h"

#include <algorithm>
#include <cctype>

#include "formats/json_text.h"

namespace stepscope::session {
namespace {

Input describe(const Trace& trace) {
  return {.path = trace.source.path,
          .format = trace.source.format,
          .writer = trace.source.writer,
          .rank = trace.rank.rank,
          .world_size = trace.rank.world_size,
          .rank_source = std::string(to_string(trace.rank.source)),
          .compressed = trace.source.compressed,
          .cached = trace.source.cached,
          .file_bytes = trace.source.file_bytes,
          .text_bytes = trace.source.text_bytes,
          .events = trace.source.events,
          .slices = trace.slices.size()};
}

// "hostname", "hostName", "Hostname": as each profiler spells it.
void add_host(Report& report, const Metadata& said) {
  std::string key = said.key;
  std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
  if (key == "hostname" || key == "host_name") report.hosts.push_back(formats::value_text(said.json));
}

}  // namespace

void add_inputs(Report& report, const Run& run) {
  report.issues.insert(report.issues.end(), run.issues.begin(), run.issues.end());
  for (const std::vector<Trace>* part : {&run.traces, &run.snapshots}) {
    for (const Trace& trace : *part) {
      report.inputs.push_back(describe(trace));
      for (const Metadata& said : trace.metadata) add_host(report, said);
      report.issues.insert(report.issues.end(), trace.issues.begin(), trace.issues.end());
    }
  }
  for (const Trace& sampler : run.telemetry) {
    for (const SampledSeries& series : sampler.sampled) {
      if (report.hosts.empty() || report.hosts.back() != series.host) report.hosts.push_back(series.host);
    }
  }
}

}  // namespace stepscope::session
