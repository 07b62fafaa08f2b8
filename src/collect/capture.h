// What to record and when: the values behind the options of `stepscope run`, how people write them, and the text that
// carries them to the hooks.
//
// Every parser takes hostile text: a wrong one is a usage error with an example, never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::collect {

// Steps are optimizer steps of one process, counted from 0; `end` is the first one that is not recorded.
struct Window {
  std::int64_t first = 0, end = 0;
  bool operator==(const Window&) const = default;
};

// Window k records the steps first + k * period up to that + active. repeat 0: to the end of the job.
struct Cycle {
  std::int64_t first = 0, active = 0, period = 0, repeat = 0;
  bool operator==(const Cycle&) const = default;
};

// Seconds since the import of torch.
struct Stretch {
  double start = 0, end = 0;
  bool operator==(const Stretch&) const = default;
};

struct Parts {
  bool shapes = true, memory = true, modules = true, stack = false, flops = false, execution_trace = false;
  bool operator==(const Parts&) const = default;
};

// What the recording may cost at most; what is empty is not limited.
struct Budget {
  std::optional<double> share;        // of the job's time, 0.01 is 1 %
  std::optional<std::int64_t> bytes;  // of trace files
  bool operator==(const Budget&) const = default;
};

// torch's history of the memory of GPUs, with Python stacks; written every so many steps, when memory runs out, and at
// the end of the job.
struct MemoryHistory {
  std::int64_t entries = 100'000;  // allocations and frees that torch keeps, the newest
  std::int64_t every = 100;        // steps
  std::string ranks = "last";      // as Capture::ranks
  std::string path;                // absolute; empty: in the run folder
  bool operator==(const MemoryHistory&) const = default;
};

// At most one of on_request, steps, cycle and seconds is set. None: automatic (an early window that is kept until
// steps 10-14 are recorded; a job without an optimizer: seconds 3 to 5 after the import of torch).
struct Capture {
  bool on_request = false;    // nothing until a request lies in the run folder
  std::vector<Window> steps;  // by first, none overlaps another
  std::optional<Cycle> cycle;
  std::optional<Stretch> seconds;
  std::string ranks = "all";  // or numbers, rising, and "last", with commas between
  Parts with;
  Budget budget;
  std::optional<MemoryHistory> memory_history;
  std::int64_t memory_steps = 0;  // from the first on, whose state of memory by module is measured
  bool nsys = false;              // records in place of torch.profiler
};

inline constexpr std::size_t kMostWindows = 256;  // all of it travels in one variable of the environment
inline constexpr std::size_t kMostRanks = 4096;

// "10:15", "10:15,40:45", N for N:N+1. Windows that overlap are made one.
Result<std::vector<Window>> parse_steps(std::string_view text);
// One number of a step.
Result<std::int64_t> parse_step(std::string_view text);
// A whole number from 1 on.
Result<std::int64_t> parse_number(std::string_view text);
// "wait=5,warmup=2,active=6,repeat=2,skip_first=1": the arguments of torch.profiler.schedule and their meaning.
Result<Cycle> parse_schedule(std::string_view text);
// "3:5", or N for 3:3+N.
Result<Stretch> parse_seconds(std::string_view text);
// Seconds to record after a wait, both as read_duration has them; without a wait as parse_seconds has it.
Result<double> parse_duration(std::string_view text);
Result<Stretch> stretch_after(std::optional<double> wait, double length);
// "all", or numbers, ranges such as 0-3, and last, with commas between; gives Capture::ranks.
Result<std::string> parse_ranks(std::string_view text);
// "shapes,memory,modules,stack,flops,execution-trace": what is named is recorded and nothing else.
Result<Parts> parse_with(std::string_view text);
// "1%", "512MB", or both with a comma between.
Result<Budget> parse_budget(std::string_view text);
// true, yes, on, 1 and their opposites.
Result<bool> parse_switch(std::string_view text);

std::string to_text(const std::vector<Window>& windows);
std::string to_text(const Parts& parts);

// The text that STEPSCOPE_CAPTURE carries to the hooks (docs/recording.md).
std::string to_text(const Capture& capture);

// `text` for a message: long ones cut, control characters replaced; and the same in quotes.
std::string shown(std::string_view text);
std::string quoted(std::string_view text);

}  // namespace stepscope::collect
