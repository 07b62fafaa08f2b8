// Telemetry of one sampler: telemetry/HOST_PID.samples, a ring of 24-byte records, and beside it
// HOST_PID.series.jsonl, which says what each series is (docs/run-folder.md). Readable while they are written and after
// the writer was killed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "run/record_ring.h"

namespace stepscope::run {

inline constexpr RingFormat kSamplesFormat{"STEPSAMP", 1, 24, "record of telemetry", 64};
inline constexpr std::uint32_t kClockSeries = 0;  // its value is Unix time in ns: a pair of clocks, once a second

struct SampleRecord {
  std::int64_t monotonic_ns;
  std::uint64_t value;  // an int64 of a counter, the bits of a double of a gauge
  std::uint32_t series, reserved;
};
static_assert(sizeof(SampleRecord) == kSamplesFormat.record_bytes);

// counter: only ever grows, so that differences count; gauge: a level at the moment.
enum class SeriesKind : std::uint8_t { gauge, counter };

struct SeriesAbout {
  std::string collector;  // cpu, io …
  std::string name;       // cpu_time
  std::string target;     // "rank 0", "host", "eth0", "gpu 1"
  std::string unit;       // ns, bytes, count, ratio, uJ …; of a counter: of what is counted
  SeriesKind kind = SeriesKind::gauge;
  std::string meaning;  // one sentence
};

struct Sample {
  std::int64_t t_ns = 0;          // Unix time
  double value = 0;               // of a counter: since the series' first sample in the file, exact below 2^53
  std::int64_t monotonic_ns = 0;  // which does not jump where somebody sets the clock
};

struct Series {
  SeriesAbout about;
  std::vector<Sample> samples;  // by time
};

struct Samples {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t file_bytes = 0;
  std::vector<Series> series;  // those with samples
  std::uint64_t dropped = 0;   // older records that the ring no longer holds
  std::uint64_t cut = 0;       // records that a file cut short does not hold
  std::int64_t drift_ns =
      0;  // how far the two clocks went apart over the file: Unix time − monotonic, last − first pair
  std::uint64_t backwards = 0;  // samples left out because their time or their counter went back
  std::uint64_t unknown = 0;    // records of series that nothing describes
};

// What a counter of this unit becomes: "cores" of ns, else its unit per second.
std::string rate_unit(const std::string& unit);

// The rate of a counter between two of its samples, in that unit, over the true time between them.
double rate_between(const SeriesAbout& about, const Sample& before, const Sample& now);

std::string to_json_line(std::uint32_t number, const SeriesAbout& about);

// Where the series of these samples are described.
std::string series_file_of(const std::string& samples_path);

// Fails on what is no such file of this version. `newest`: at most so many records, for who looks again and again.
Result<Samples> read_samples(const std::string& path, std::uint64_t newest = UINT64_MAX);

// Paths of the files below <run folder>/telemetry, sorted.
std::vector<std::string> sample_files(const std::string& run_folder);

}  // namespace stepscope::run
