// How a running job stands, from the marks of its ranks: what `stepscope live` shows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/ring.h"

namespace stepscope::run {

inline constexpr std::size_t kMarkPhases = 5;  // see phase_name

struct RankProgress {
  std::string host;
  std::int64_t pid = 0, rank = 0, world_size = 1;
  bool running = true;                               // false: the process is gone; only known on its own host
  std::int64_t started_unix_ns = 0;                  // when it kept its first mark; 0: not known
  bool left = false;                                 // the hooks left the process: nothing is marked any more
  std::int64_t steps = 0;                            // steps done
  std::int64_t last_end_ns = 0;                      // Unix time of the last mark's end
  std::optional<std::int64_t> median_step_ns;        // of the newest `window` steps
  std::array<std::int64_t, kMarkPhases> phase_ns{};  // median over those steps; [0]: outside all phases
  std::vector<std::int64_t> step_ns;                 // the newest steps, oldest first
  unsigned phase_now = 0;
  std::int64_t phase_since_ns = 0;
  std::optional<std::int64_t> recording_since;  // the first step of a part that is not written yet
};

// `window`: how many of the newest steps count.
RankProgress progress_of(const Ring& ring, std::size_t window);

// The rank whose own work takes longest: its median step without the backward pass, in which ranks wait for each other,
// exceeds that of the median rank by more than a tenth. Index into `ranks`; nullopt: none stands out.
std::optional<std::size_t> slowest(const std::vector<RankProgress>& ranks);

}  // namespace stepscope::run
