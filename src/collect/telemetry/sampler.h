// Samples all collectors that this machine has into a run folder, on a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

struct Choice {
  std::string collector;
  int interval_ms = 0;  // 0: as usual
};

// "cpu,memory:1s,io:500ms"; `default` stands for all that are not on request.
Result<std::vector<Choice>> parse_collectors(std::string_view text);
std::string collector_names();  // "cpu, memory, io"

struct SamplerOptions {
  int interval_ms = 0;       // 0: each collector's own
  std::vector<Choice> only;  // empty: all but those on request
  std::uint64_t most_bytes = 64 << 20;
  Roots roots;
};

// What is watched now; asked about once a second.
using FindGroups = std::function<std::vector<Group>()>;

// A collector that is not there, and why.
struct Absent {
  std::string collector;
  Error why;
};

class Sampler {
 public:
  // The file is made and all collectors are opened before it returns; sampling begins at once.
  static Result<std::unique_ptr<Sampler>> start(const std::string& run_folder, const SamplerOptions& options,
                                                FindGroups find_groups);
  ~Sampler();  // ends the thread; what was sampled is in the file

  const std::vector<Absent>& absent() const { return absent_; }
  // CPU time of the sampling thread so far, and how many samples it took.
  std::int64_t cpu_ns() const { return cpu_ns_; }
  std::uint64_t samples() const { return samples_; }

 private:
  struct Impl;
  Sampler() = default;
  std::unique_ptr<Impl> impl_;
  std::vector<Absent> absent_;
  std::atomic<std::int64_t> cpu_ns_{0};
  std::atomic<std::uint64_t> samples_{0};
};

}  // namespace stepscope::collect::telemetry
