// Opens one file as every door does (read and derive, or from the cache) and says what it cost.
//
//   open_file FILE [no-cache]  →  {"wall_s", "cpu_s", "cached", "rss_mb"}
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "cost.h"
#include "session/session.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  stepscope::session::OpenOptions options;
  options.use_cache = argc < 3 || std::string_view(argv[2]) != "no-cache";
  options.threads = 1;
  const std::string path = argv[1];
  const stepscope::bench::Cost cost;
  const auto run = stepscope::session::open(std::span(&path, 1), options);
  const double wall_s = cost.wall_s(), cpu_s = cost.cpu_s();
  if (!run) return 1;
  std::printf("{\"wall_s\": %.4f, \"cpu_s\": %.4f, \"cached\": %d, \"rss_mb\": %.1f}\n", wall_s, cpu_s,
              int{run->traces.front().source.cached}, stepscope::bench::Cost::peak_mb());
  std::fflush(stdout);
  _exit(0);  // giving the memory back is not what is measured
}
