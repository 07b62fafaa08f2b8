// Samples all collectors that this machine has into a run folder, on threads of its own: those that ask a driver have
// one for themselves (lane.h), so that a driver that hangs delays no other.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/telemetry/collector.h"
#include "collect/telemetry/lane.h"
#include "collect/telemetry/openmetrics_file.h"

namespace stepscope::collect::telemetry {

struct Choice {
  std::string collector;
  int interval_ms = 0;    // 0: as usual
  bool is_named = false;  // by the user, not only as one of the default
};

// "500ms", "0.5s": in ms.
Result<int> parse_interval(std::string_view text);
// "cpu,memory:1s,io:500ms"; `default` stands for all that are not on request.
Result<std::vector<Choice>> parse_collectors(std::string_view text);
std::string collector_names();  // "cpu, memory, io"

struct SamplerOptions {
  int interval_ms = 0;       // 0: each collector's own
  std::vector<Choice> only;  // empty: all but those on request
  std::uint64_t most_bytes = 64 << 20;
  Roots roots;
  std::span<const Collector> from = collectors();
  std::string openmetrics, job;  // the file that the newest values stand in as well, and whose they are; empty: none
};

// What is watched now; asked about once a second, and soon after a rank has begun to keep marks.
using FindGroups = std::function<std::vector<Group>()>;

class Sampler {
 public:
  // The file is made before it returns, and all collectors are opened, but those of a driver that takes too long.
  static Result<std::unique_ptr<Sampler>> start(const std::string& run_folder, const SamplerOptions& options,
                                                FindGroups find_groups);
  ~Sampler() { end(); }
  // Ends the threads; what was sampled is in the file. One that hangs in a driver is left behind after two seconds.
  // What went wrong meanwhile.
  std::vector<std::string> end();

  std::vector<Absent> absent() const;
  // Of those that the user named: a sentence for each that is not here.
  std::vector<std::string> missed() const;
  // CPU time of the threads so far, and how many samples they took.
  std::int64_t cpu_ns() const;
  std::uint64_t samples() const { return file_->written(); }

 private:
  Sampler() = default;
  std::vector<Choice> wanted_;
  std::shared_ptr<SampleFile> file_;
  std::shared_ptr<OpenMetricsFile> metrics_;
  std::vector<std::shared_ptr<Lane>> lanes_;  // our own first, which finds the groups; then the drivers'
};

}  // namespace stepscope::collect::telemetry
