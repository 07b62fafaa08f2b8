// What was sampled of the machine beside a job: counters and gauges on the clock of its steps.
//
// A counter is asked for amounts between two moments (by linear interpolation between its samples) and for the rate
// that it had in each phase. Phases are often shorter than the time between two samples; then each sample holds a
// mixture, and the rates are those that explain all of them best (least squares).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/column.h"
#include "base/intervals.h"
#include "model/curves.h"

namespace stepscope {

struct Run;
struct Trace;

// Source::format of a trace that was read from a sampler's file alone, as counters.
inline constexpr std::string_view kSampleFiles = "samples";

// Metadata of a trace of Run::history: samples in a batch of the rank's data loader, as the hooks noted it.
inline constexpr std::string_view kBatchSize = "batch_size";
// Of a rank with a profiler of torch's of its own: steps that ended while it recorded, and where the program makes it.
inline constexpr std::string_view kOwnProfiledSteps = "own_profiled_steps", kOwnProfilerFile = "own_profiler_file",
                                  kOwnProfilerLine = "own_profiler_line";

// What a row of Trace::samples is of.
struct SampledSeries {
  std::string host;
  std::string collector, name;  // cpu, cpu_time
  std::string target;           // "rank 0", "host", "eth0", "gpu 1"
  std::string unit;             // ns, bytes, count, ratio, uJ …; of a counter: of what is counted
  std::string rate_unit;        // of a counter's rate: cores, bytes/s …
  std::string meaning;          // one sentence
  bool is_counter = false;
  std::optional<std::int64_t> rank;  // of a target that is a rank
};

// The samples of a sampler's file, series by series and each by time. 28 bytes a row.
struct Samples {
  Column<std::uint32_t> series;  // index into Trace::sampled
  Column<std::int64_t> time_ns;  // Unix
  Column<double> value;          // of a counter: what it grew by since its first sample
  Column<double> rate;           // of a counter: since the sample before, in its rate_unit; else NaN

  std::size_t size() const { return series.size(); }
};

// A series of the run with its samples; both live in the run.
struct Sampled {
  const SampledSeries* about = nullptr;
  CurveView samples;             // Unix ns; values as in Samples
  std::span<const double> rate;  // of a counter; as in Samples
};

// All series of the run that have samples, in the order of their files.
std::vector<Sampled> sampled_series(const Run& run);

// The marks of all steps of a rank; nullptr: there are none.
const Trace* marks_of_rank(const Run& run, std::int64_t rank);

// "gpu 3", the target of a GPU where a collector found this rank; "": none did.
std::string gpu_of_rank(std::span<const Sampled> all, std::int64_t rank);

inline constexpr double kIdleCore = 0.5;  // less helps no thread or worker more

// Cores that nobody used while ranks made their steps, on the machine where that is least; nullopt: not known.
std::optional<double> idle_cores(const Run& run);

// How much a counter grew between two moments; nullopt where its samples do not reach.
std::optional<double> growth(CurveView counter, Interval during);

// Mean of a gauge over its samples in [start, end); nullopt without any.
std::optional<double> level(CurveView gauge, Interval during);

// Kinds of time, such as the phases of a step; disjoint.
using Kinds = std::vector<Intervals>;

// What is known of a counter's rates beforehand; per ns.
struct RateBounds {
  double small = 0;          // what is known so well is known
  double most = INFINITY;    // that is possible
  std::int64_t late_ns = 0;  // what happens may be counted so much later: at a tick, when a system call ends
};

// The rate per ns that a counter had in each kind of time; nullopt where the samples cannot tell: fewer than there are
// kinds, an estimate that is sure neither to a quarter of itself or of the counter's mean rate nor to `small`, one
// above what is possible, or one that is another where all was counted `late_ns` earlier: then it lies at a border of
// kinds, and on which side nobody knows.
std::vector<std::optional<double>> rates_by_kind(CurveView counter, const Kinds& kinds, const RateBounds& bounds = {});

// The mean of a gauge's samples in each kind of time.
std::vector<std::optional<double>> levels_by_kind(CurveView gauge, const Kinds& kinds);

}  // namespace stepscope
