// The marks that each rank keeps all the time: telemetry/HOST_PID.ring, a ring of 32-byte records in a mapped file
// (docs/run-folder.md; written by python/stepscope/hooks/_stepscope_hooks/marks.py). Readable while it is written and
// after the writer was killed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::run {

// part: a part of a recording began (phase kPartBegins) or was handed to its file (kPartWritten) before this step, or
// the hooks left the process, which runs on (kHooksLeft).
enum class MarkKind : std::uint16_t { clock = 1, step = 2, phase = 3, part = 4 };
inline constexpr std::string_view kRingMagic = "STEPRING";  // the first bytes of the file
inline constexpr std::uint16_t kPartBegins = 1, kPartWritten = 2, kHooksLeft = 3;

// The phases of the model, by their numbers: 0 none, 1 dataloader, 2 forward, 3 backward, 4 optimizer.
std::string_view phase_name(unsigned phase);

struct Mark {
  std::int64_t start_ns = 0;  // Unix time
  std::int64_t dur_ns = 0;
  std::int64_t step = 0;
  MarkKind kind = MarkKind::step;
  std::uint16_t phase = 0;  // of a step: what ended it, optimizer or forward
  std::uint64_t place = 0;  // of the record, from the file's start
};

struct Ring {
  std::string host;
  std::int64_t pid = 0, rank = 0, world_size = 1;
  std::string rank_source;
  std::int64_t started_unix_ns = 0;
  std::uint64_t file_bytes = 0;
  std::vector<Mark> marks;    // oldest first; clock records are used up
  std::uint64_t dropped = 0;  // older marks that the ring no longer holds
  std::uint64_t cut = 0;      // marks that a file cut short does not hold
  // What the rank did when the file was read: the phase and since when; phase 0: between phases.
  unsigned phase_now = 0;
  std::int64_t phase_since_ns = 0, step_now = 0;
};

// Fails on what is no ring of this version. Records that were overwritten while the file was read are left out.
Result<Ring> read_ring(const std::string& path);

// Paths of the rings below <run folder>/telemetry, sorted.
std::vector<std::string> ring_files(const std::string& run_folder);

}  // namespace stepscope::run
