// What is sampled, and how the ranks stand, as OpenMetrics text 1.0: the newest value of each series, counters as
// totals, in base units (seconds, bytes, joules).
//
// Label values must not grow without end: there are ranks, devices and parts of the machine, and neither processes nor
// cgroups. It has no times and no quotes in sentences, which node_exporter's collector of text files does not take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/telemetry/sample_file.h"
#include "run/progress.h"

namespace stepscope::collect::telemetry {

inline constexpr std::size_t kMetricsSteps = 20;  // the newest, of which the medians are

struct Metrics {
  std::string job, host;
  std::vector<Newest> sampled;
  std::vector<run::RankProgress> ranks;  // one of each number, by kMetricsSteps
  std::int64_t monotonic_ns = 0, unix_ns = 0;
};

// What was sampled last more than a minute ago is left out: a rank that has ended uses no memory.
std::string openmetrics_text(const Metrics& metrics);

}  // namespace stepscope::collect::telemetry
