#include "cli/monitor/summary.h"

#include <doctest/doctest.h>

#include <sstream>

#include "report/utf8.h"

namespace stepscope::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

run::Series series(const char* target, const char* name, const char* unit, run::SeriesKind kind,
                   const std::vector<double>& values) {
  run::Series out{{"made", name, target, unit, kind, ""}, {}};
  for (const double value : values) {
    const auto t = static_cast<std::int64_t>(out.samples.size()) * kSecond;
    out.samples.push_back({t, value, t});
  }
  return out;
}

std::string summary_of(std::vector<run::Series> all, unsigned width) {
  run::Samples samples;
  samples.series = std::move(all);
  report::TextStyle style;
  style.width = width;
  style.max_rows = 0;
  return sampled_summary(samples, "runs/one", style);
}

TEST_CASE("monitor: series that changed come first, then those that stayed; zeros have no line") {
  constexpr auto kCounter = run::SeriesKind::counter, kGauge = run::SeriesKind::gauge;
  const std::string text = summary_of(
      {series("eth0", "dropped", "count", kCounter, {0, 0, 0}), series("host", "online_cores", "count", kGauge, {8, 8}),
       series("rank 0", "cpu_time", "ns", kCounter, {0, 5e8, 25e8}), series("rank 0", "swap", "bytes", kGauge, {0, 0}),
       series("rank 0", "rss", "bytes", kGauge, {1024, 3072}), series("rank 1", "cpu_time", "ns", kCounter, {0})},
      100);
  const std::size_t cpu = text.find("cpu_time"), rss = text.find("rss"), cores = text.find("online_cores");
  REQUIRE(cores != text.npos);
  CHECK(cpu < cores);
  CHECK(rss < cores);
  CHECK(text.find("1.25 cores") != text.npos);  // the mean, and
  CHECK(text.find("2 cores") != text.npos);     // the most between two samples
  CHECK(text.find("2.00 KiB") != text.npos);
  CHECK(text.find("3.00 KiB") != text.npos);
  CHECK(text.find("one sample only") > rss);
  CHECK(text.find("dropped") == text.npos);
  CHECK(text.find("2 series stayed 0: stepscope query runs/one \"select") != text.npos);
}

TEST_CASE("monitor: values stand in the units that people read") {
  constexpr auto kCounter = run::SeriesKind::counter, kGauge = run::SeriesKind::gauge;
  const std::string text = summary_of({series("gpu 0", "gpu_energy", "uJ", kCounter, {0, 1.886e8, 3.96e8}),
                                       series("gpu 0", "gpu_sm_clock", "hertz", kGauge, {1.98e9, 1.98e9}),
                                       series("gpu 1", "gpu_sm_clock", "hertz", kGauge, {345e6, 345e6}),
                                       series("gpu 0", "gpu_pcie_send_rate", "bytes/s", kGauge, {1 << 20, 3 << 20}),
                                       series("host", "context_switches", "count", kCounter, {0, 500, 1200})},
                                      100);
  for (const char* value : {"198 W", "207.4 W", "1.98 GHz", "345 MHz", "2.00 MiB/s", "600 /s", "700 /s"}) {
    CHECK_MESSAGE(text.find(value) != text.npos, value, "\n", text);
  }
}

TEST_CASE("monitor: no line of the table is wider than the terminal") {
  const std::string longest(120, 'x');
  for (const unsigned width : {40u, 60u, 100u}) {
    std::istringstream lines(summary_of({series(("cgroup /system.slice/" + longest).c_str(), "memory_used", "bytes",
                                                run::SeriesKind::gauge, {1e9, 2e9})},
                                        width));
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) most = std::max(most, report::display_width(line));
    CHECK(most > 0);
    CHECK(most <= width);
  }
}

TEST_CASE("monitor: without a series there is nothing to say") { CHECK(summary_of({}, 80).empty()); }

}  // namespace
}  // namespace stepscope::cli
