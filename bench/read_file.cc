// Reads one file into a Trace and says what it cost.
//
//   read_file FILE THREADS [tolerant]  →  {"wall_s", "cpu_s", "events", "rss_mb", "text_bytes", "stored_bytes"}
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cost.h"
#include "model/trace_members.h"
#include "read/reader.h"

namespace {

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
  const stepscope::bench::Cost cost;
  const auto traces = stepscope::read::reader_named("chrome_trace")->read(argv[1], options);
  const double wall_s = cost.wall_s(), cpu_s = cost.cpu_s();
  if (!traces) return 1;
  const stepscope::Trace& trace = traces->front();
  StoredBytes stored;
  stored(trace);
  std::printf(
      "{\"wall_s\": %.4f, \"cpu_s\": %.4f, \"events\": %llu, \"rss_mb\": %.1f, \"text_bytes\": %llu, "
      "\"stored_bytes\": %zu}\n",
      wall_s, cpu_s, static_cast<unsigned long long>(trace.source.events), stepscope::bench::Cost::peak_mb(),
      static_cast<unsigned long long>(trace.source.text_bytes), stored.bytes);
  std::fflush(stdout);
  _exit(0);  // giving the memory back is not what is measured
}
