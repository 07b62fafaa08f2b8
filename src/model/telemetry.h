// What was sampled of the machine beside a job: counters and gauges on the clock of its steps.
//
// A counter is asked for amounts between two moments (by linear interpolation between its samples) and for the rate
// that it had in each phase. Phases are often shorter than the time between two samples; then each sample holds a
// mixture, and the rates are those that explain all of them best (least squares).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/intervals.h"
#include "model/curves.h"

namespace stepscope {

struct SampledSeries {
  std::string host;
  std::string collector, name;  // cpu, cpu_time
  std::string target;           // "rank 0", "host", "eth0", "gpu 1"
  std::string unit;             // ns, bytes, count, ratio, uJ …; of a counter: of what is counted
  std::string meaning;          // one sentence
  bool is_counter = false;
  std::optional<std::int64_t> rank;  // of a target that is a rank
  Curve samples;                     // Unix ns; a counter: what it grew by since the first of them
};

// How much a counter grew between two moments; nullopt where its samples do not reach.
std::optional<double> growth(const Curve& counter, Interval during);

// Mean of a gauge over its samples in [start, end); nullopt without any.
std::optional<double> level(const Curve& gauge, Interval during);

// Kinds of time, such as the phases of a step; disjoint.
using Kinds = std::vector<Intervals>;

// The rate per ns that a counter had in each kind of time; nullopt where the samples cannot tell: fewer than there are
// kinds, or an estimate that is sure neither to a quarter of itself or of the counter's mean rate nor to `small` per
// ns.
std::vector<std::optional<double>> rates_by_kind(const Curve& counter, const Kinds& kinds, double small = 0);

// The mean of a gauge's samples in each kind of time.
std::vector<std::optional<double>> levels_by_kind(const Curve& gauge, const Kinds& kinds);

}  // namespace stepscope
