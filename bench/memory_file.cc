// Opens one memory snapshot as every door does, makes its answer, and asks for its state at random events.
//
//   memory_file FILE  →  {"events", "open_cpu_s", "answer_cpu_s", "state_ms": {"median", "most"}, "rss_mb"}
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "cost.h"
#include "session/session.h"
#include "snapshot/state.h"
#include "snapshot/views.h"

namespace {

constexpr int kStates = 200;

// CPU ms of each.
std::vector<double> state_times(const stepscope::Run& run) {
  std::vector<double> times;
  std::mt19937 chance(0);
  for (const stepscope::snapshot::View& view : stepscope::snapshot::views_of(run)) {
    std::uniform_int_distribution<std::uint32_t> moments(0, view.device->last_moment());
    for (int i = 0; i < kStates; i++) {
      const std::uint32_t moment = moments(chance);
      const stepscope::bench::Cost cost;
      const auto state = stepscope::snapshot::state_at(view.history(), *view.device, moment);
      times.push_back(state.moment == moment ? cost.cpu_s() * 1e3 : 0);
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  stepscope::session::OpenOptions options;
  options.use_cache = false;
  options.threads = 1;
  const std::string path = argv[1], name = "snapshot";
  const stepscope::bench::Cost opening;
  const auto run = stepscope::session::open(std::span(&path, 1), options);
  const double open_cpu_s = opening.cpu_s();
  if (!run || run->snapshots.empty()) return 1;
  const stepscope::bench::Cost answering;
  const auto answer = stepscope::session::one_answer(*run, name);
  const double answer_cpu_s = answering.cpu_s();
  if (!answer) return 1;
  const double rss_mb = stepscope::bench::Cost::peak_mb();
  const std::vector<double> times = state_times(*run);
  std::printf(
      "{\"events\": %llu, \"open_cpu_s\": %.4f, \"answer_cpu_s\": %.4f, \"state_ms\": {\"median\": %.3f, \"most\": "
      "%.3f}, \"rss_mb\": %.1f}\n",
      static_cast<unsigned long long>(run->snapshots.front().source.events), open_cpu_s, answer_cpu_s,
      times[times.size() / 2], times.back(), rss_mb);
  std::fflush(stdout);
  _exit(0);  // giving the memory back is not what is measured
}
