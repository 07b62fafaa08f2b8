// Requests to record, as files in the run folder: requests/NNNN.json (docs/run-folder.md). The hooks look for them at
// step boundaries and once a second; whoever asks (a signal to `stepscope run`, attach) only writes such a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace stepscope::collect {

inline constexpr int kRequestVersion = 1;
inline constexpr std::int64_t kRequestedSteps = 3;

enum class Wanted : std::uint8_t { trace, memory };  // memory: a snapshot of what the device's allocator holds

struct Request {
  std::int64_t steps = kRequestedSteps;  // to record, from the next step boundary on
  std::string ranks = "all";             // as Capture::ranks
  // Processes that were attached to count their steps from different moments: the ranks begin with the first step after
  // a common time instead of with a common number, and take the number from each other.
  bool by_time = false;
  bool detach = false;  // the hooks leave the processes when it is recorded
  double seconds = 0;   // > 0: so long instead of steps, from start_unix_ns on, in jobs without steps too
  std::int64_t start_unix_ns = 0;
  Wanted wanted = Wanted::trace;
};

// When a request in seconds begins that is written now: every rank has looked by then, and `warmup_s` is over.
std::int64_t start_after(double warmup_s);

// Writes the next free number, whole or not at all, and gives it ("0001"). Several writers do not meet.
// Asks the ranks to forget a request, also one that is being recorded.
Result<void> withdraw_request(const std::string& run_folder, const std::string& id);

Result<std::string> write_request(const std::string& run_folder, const Request& request);

// The first step of the request `id`, once a rank has chosen it.
std::optional<std::int64_t> chosen_start(const std::string& run_folder, const std::string& id);

}  // namespace stepscope::collect
