// What a Kineto client is to record, and the KEY=VALUE text that says so to it.
//
// PROFILE_MEMORY (the CUDA allocator's snapshot) is left out on purpose: the thread that Kineto starts for it never
// sleeps and would take one core from the job until its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace stepscope::collect::kineto {

// Exactly one of `duration_ms` and `iterations` is set. An iteration is an optimizer step: jobs without an optimizer
// (inference) and jobs before their first step have none, and ignore a request in iterations.
struct OnDemand {
  // The trace of process PID becomes PREFIX_PID.json. Absolute. Kineto after torch 2.13 writes below /tmp or
  // $KINETO_ONDEMAND_TRACE_DIR only, so a private folder below /tmp (mkdtemp) is the right place on every version.
  std::string file_prefix;

  std::optional<std::int64_t> duration_ms;
  std::int64_t start_unix_ms = 0;  // same for all ranks; 0: as early as every rank can make it (serve chooses)
  std::int64_t warmup_s = 1;       // events are thrown away for so long before the start, so that CUPTI has settled

  // Counted from 0. Start K and N iterations hold K + 1 … K + N whole: recording begins as the optimizer step of K
  // ends.
  std::optional<std::int64_t> iterations;
  std::optional<std::int64_t> start_iteration;  // K; when it is over at the next multiple of start_roundup
  std::int64_t start_roundup = 1;
  std::int64_t warmup_iterations = 0;

  bool shapes = true;
  bool memory = false;  // bytes per op where torch gives them; single allocations do not reach this kind of trace
  bool stack = false;
  bool flops = false;
  bool modules = false;
};

// The path that process `pid` (as it sees itself) writes for this prefix.
std::string trace_path(const std::string& file_prefix, int pid);

// A usage error when the request is contradictory or out of range, or when the prefix holds something that Kineto would
// read as its own syntax. Clients up to torch 2.13 may die of a value that they cannot read: nothing unchecked goes
// out.
Result<std::string> to_config(const OnDemand& request);

}  // namespace stepscope::collect::kineto
