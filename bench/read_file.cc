// Reads one file into a Trace and says what it cost.
//
//   read_file FILE THREADS [tolerant]  →  {"wall_s", "cpu_s", "events", "rss_mb", "text_bytes", "stored_bytes"}
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "model/trace_members.h"
#include "read/reader.h"

namespace {

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Bytes of all columns, by the list of members that the cache uses too.
struct StoredBytes {
  std::size_t bytes = 0;
  template <class T>
  void operator()(const T& member) {
    if constexpr (requires { member.bytes(); }) {
      bytes += member.bytes();
    } else if constexpr (requires { stepscope::each_member(member, *this); }) {
      stepscope::each_member(member, *this);
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  stepscope::read::ReadOptions options;
  options.threads = static_cast<unsigned>(std::atoi(argv[2]));
  options.tolerant_only = argc > 3 && std::string_view(argv[3]) == "tolerant";
  const double t0 = wall_s(), c0 = cpu_s();
  const auto trace = stepscope::read::readers().front().read(argv[1], options);
  const double t1 = wall_s(), c1 = cpu_s();
  if (!trace) return 1;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  StoredBytes stored;
  stored(*trace);
  std::printf(
      "{\"wall_s\": %.4f, \"cpu_s\": %.4f, \"events\": %llu, \"rss_mb\": %.1f, \"text_bytes\": %llu, "
      "\"stored_bytes\": %zu}\n",
      t1 - t0, c1 - c0, static_cast<unsigned long long>(trace->source.events),
      static_cast<double>(usage.ru_maxrss) / 1024, static_cast<unsigned long long>(trace->source.text_bytes),
      stored.bytes);
  std::fflush(stdout);
  _exit(0);  // giving the memory back is not what is measured
}
