// Opens one file as every door does (read and derive, or from the cache) and says what it cost.
//
//   open_file FILE [no-cache]  →  {"wall_s", "cpu_s", "cached", "rss_mb"}
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "session/session.h"

namespace {

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  stepscope::session::OpenOptions options;
  options.use_cache = argc < 3 || std::string_view(argv[2]) != "no-cache";
  options.threads = 1;
  const std::string path = argv[1];
  const double t0 = wall_s();
  const auto run = stepscope::session::open(std::span(&path, 1), options);
  const double t1 = wall_s();
  if (!run) return 1;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  std::printf("{\"wall_s\": %.4f, \"cpu_s\": %.4f, \"cached\": %d, \"rss_mb\": %.1f}\n", t1 - t0,
              seconds(usage.ru_utime) + seconds(usage.ru_stime), int{run->traces.front().source.cached},
              static_cast<double>(usage.ru_maxrss) / 1024);
  std::fflush(stdout);
  _exit(0);  // giving the memory back is not what is measured
}
