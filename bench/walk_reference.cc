// A yardstick of the reading benchmark: simdjson's On Demand walks every member of every event of a whole file in
// memory and decodes name, category, ts, dur and args.correlation into a sum. It stores nothing.
// Built with NDEBUG: without it On Demand keeps its own assertions and takes 1.6 times as long.
//
//   walk_reference FILE  →  {"read_s", "walk_s", "walk_cpu_s", "events", "rss_mb", "check"}
#include <simdjson.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#ifndef NDEBUG
#error "build the yardstick with NDEBUG"
#endif

namespace {

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Sum {
  std::uint64_t events = 0, correlation = 0, name_bytes = 0, category_bytes = 0;
  double ts = 0, dur = 0;
};

// In a function of its own: GCC holds main() for code that runs once and inlines little there.
[[gnu::noinline]] void walk(simdjson::ondemand::array events, Sum& sum) {
  for (simdjson::ondemand::object event : events) {
    sum.events++;
    for (auto field : event) {
      const std::string_view key = field.unescaped_key();
      simdjson::ondemand::value value = field.value();
      if (key == "name") {
        sum.name_bytes += std::string_view(value.get_string()).size();
      } else if (key == "cat") {
        sum.category_bytes += std::string_view(value.get_string()).size();
      } else if (key == "ts") {
        sum.ts += double(value.get_double());
      } else if (key == "dur") {
        sum.dur += double(value.get_double());
      } else if (key == "args") {
        for (auto argument : value.get_object()) {
          if (std::string_view(argument.unescaped_key()) != "correlation") continue;
          sum.correlation += std::uint64_t(argument.value().get_uint64());
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const double t0 = wall_s();
  simdjson::padded_string text;
  if (simdjson::padded_string::load(argv[1]).get(text)) return 1;
  const double t1 = wall_s(), c1 = cpu_s();
  Sum sum;
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::array events;
  if (parser.iterate(text).get(document) || document["traceEvents"].get_array().get(events)) return 1;
  walk(events, sum);
  const double t2 = wall_s(), c2 = cpu_s();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"read_s\": %.4f, \"walk_s\": %.4f, \"walk_cpu_s\": %.4f, \"events\": %llu, \"rss_mb\": %.1f, "
      "\"check\": %.0f}\n",
      t1 - t0, t2 - t1, c2 - c1, static_cast<unsigned long long>(sum.events),
      static_cast<double>(usage.ru_maxrss) / 1024,
      sum.ts + sum.dur + static_cast<double>(sum.correlation + sum.name_bytes + sum.category_bytes));
}
