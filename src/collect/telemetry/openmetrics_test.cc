// The text of OpenMetrics by a small strict reader of its grammar, and the file that it stands in.
#include "collect/telemetry/openmetrics.h"

#include <bit>
#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "base/temp_fixture.h"
#include "base/whole_file.h"
#include "collect/telemetry/openmetrics_file.h"
#include "collect/telemetry/telemetry_fixture.h"
#include "run/living.h"
#include "run/ring_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

constexpr std::int64_t kNow = 100'000'000'000, kSecond = 1'000'000'000;

// The samples by "name{labels}"; fails on what OpenMetrics 1.0 does not allow.
std::map<std::string, double> read_strictly(const std::string& text) {
  static const std::regex head("# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_][a-z0-9_]*="(?:[^"\\\n]|\\[n"\\])*",?)+)\} ([-+0-9.e]+))re");
  std::map<std::string, double> samples;
  std::set<std::string> families;
  std::string family, type, line, before;
  std::istringstream lines(text);
  REQUIRE(("\n" + text).ends_with("\n# EOF\n"));
  while (std::getline(lines, line) && line != "# EOF") {
    std::smatch part;
    if (std::regex_match(line, part, head)) {
      const std::string word = part[1], name = part[2], rest = part[3];
      if (word == "TYPE") {
        CHECK_MESSAGE(families.insert(name).second, line);  // a family stands in one place
        family = name;
        type = rest;
        CHECK_MESSAGE((type == "counter" || type == "gauge"), line);
      }
      CHECK_MESSAGE(name == family, line);
      if (word == "UNIT") CHECK_MESSAGE((before == "TYPE" && name.ends_with("_" + rest)), line);
      if (word == "HELP") CHECK_MESSAGE(rest.find('"') == rest.npos, line);
      before = word;
      continue;
    }
    REQUIRE_MESSAGE(std::regex_match(line, part, sample), line);
    CHECK_MESSAGE(part[1].str() == family + (type == "counter" ? "_total" : ""), line);
    CHECK_MESSAGE(samples.try_emplace(part[1].str() + "{" + part[2].str() + "}", std::stod(part[3])).second, line);
  }
  CHECK_FALSE(std::getline(lines, line));
  return samples;
}

Newest counted(const char* collector, const char* name, const char* target, const char* unit, std::int64_t value) {
  return {{collector, name, target, unit, run::SeriesKind::counter, "Some \"sentence\": of it"},
          kNow - kSecond,
          static_cast<std::uint64_t>(value)};
}

Newest level(const char* collector, const char* name, const char* target, const char* unit, double value) {
  return {{collector, name, target, unit, run::SeriesKind::gauge, "Level"},
          kNow - kSecond,
          std::bit_cast<std::uint64_t>(value)};
}

std::map<std::string, double> exposed(std::vector<Newest> sampled, std::vector<run::RankProgress> ranks = {}) {
  return read_strictly(openmetrics_text({"j", "h", std::move(sampled), std::move(ranks), kNow, kNow}));
}

}  // namespace

TEST_CASE("openmetrics: names, base units and labels") {
  const auto found = exposed(
      {counted("cpu", "cpu_time", "rank 3", "ns", 2'500'000'000),
       counted("power", "energy", "package 1 dram", "uJ", 7'000'000), counted("power", "energy", "psys", "uJ", 1),
       counted("network", "received", "eth0", "bytes", 10), counted("infiniband", "received", "mlx5_0/1", "bytes", 11),
       counted("storage", "reads", "/mnt \"a\\b\"\n", "count", 12),
       level("gpu", "gpu_memory_used", "gpu 0 mig 1", "bytes", 3e9),
       level("amd_gpu", "gpu_utilization", "amd gpu 2", "ratio", 0.25),
       level("infiniband", "link_rate", "mlx5_0/1", "bytes/s", 5e10), level("pss", "pss", "rank 0", "bytes", 1),
       level("numa", "memory_free", "numa 1", "bytes", 1e18), level("host", "online_cores", "host", "count", 64)});
  const std::map<std::string, double> expected{
      {R"(stepscope_cpu_time_seconds_total{job="j",host="h",rank="3"})", 2.5},
      {R"(stepscope_power_energy_joules_total{job="j",host="h",package="1",part="dram"})", 7},
      {R"(stepscope_power_energy_joules_total{job="j",host="h",part="psys"})", 1e-6},
      {R"(stepscope_network_received_bytes_total{job="j",host="h",interface="eth0"})", 10},
      {R"(stepscope_infiniband_received_bytes_total{job="j",host="h",port="mlx5_0/1"})", 11},
      {R"(stepscope_storage_reads_total{job="j",host="h",mount="/mnt \"a\\b\"\n"})", 12},
      {R"(stepscope_gpu_memory_used_bytes{job="j",host="h",gpu="0",mig="1"})", 3e9},
      {R"(stepscope_gpu_utilization_ratio{job="j",host="h",amd_gpu="2"})", 0.25},
      {R"(stepscope_infiniband_link_rate_bytes_per_second{job="j",host="h",port="mlx5_0/1"})", 5e10},
      {R"(stepscope_pss_bytes{job="j",host="h",rank="0"})", 1},
      {R"(stepscope_numa_memory_free_bytes{job="j",host="h",numa="1"})", 1e18},
      {R"(stepscope_host_online_cores{job="j",host="h"})", 64},
  };
  CHECK(found == expected);
}

TEST_CASE("openmetrics: nothing that grows, is old, or is no number") {
  Newest old = level("memory", "rss", "rank 0", "bytes", 1), none = level("memory", "rss", "rank 1", "bytes", 1);
  old.monotonic_ns = kNow - 61 * kSecond;
  none.monotonic_ns = 0;
  CHECK(exposed({old, none, counted("cpu", "cpu_time", "pid 4711", "ns", 1),
                 counted("cgroup", "cpu_time", "cgroup /a/b", "ns", 1),
                 counted("pressure", "cpu_pressure_some", "cgroup /a/b", "ns", 1),
                 level("memory", "rss", "rank 2x", "bytes", 1), level("memory", "rss", "rank 3", "bytes", NAN)})
            .empty());
  CHECK(openmetrics_text({}) == "# EOF\n");
  const std::string odd =
      openmetrics_text({"\xff\"", "h", {level("memory", "rss", "rank 3", "bytes", 1)}, {}, kNow, 0});
  CHECK(odd.find(R"({job="?\"",host="h",rank="3"} 1)") != odd.npos);
}

TEST_CASE("openmetrics: how the ranks stand") {
  run::RankProgress runs, ended;
  runs.rank = 1;
  runs.steps = 40;
  runs.median_step_ns = 200'000'000;
  runs.phase_ns = {100'000'000, 0, 50'000'000, 40'000'000, 10'000'000};
  ended = runs;
  ended.rank = 2;
  ended.running = false;
  ended.last_end_ns = kNow - 61 * kSecond;
  auto found = exposed({}, {runs, ended});
  CHECK(found[R"(stepscope_steps_total{job="j",host="h",rank="1"})"] == 40);
  CHECK(found[R"(stepscope_steps_total{job="j",host="h",rank="2"})"] == 40);
  CHECK(found[R"(stepscope_step_seconds{job="j",host="h",rank="1"})"] == doctest::Approx(0.2));
  CHECK(found[R"(stepscope_phase_ratio{job="j",host="h",rank="1",phase="other"})"] == doctest::Approx(0.5));
  CHECK(found[R"(stepscope_phase_ratio{job="j",host="h",rank="1",phase="forward"})"] == doctest::Approx(0.25));
  CHECK(found.size() == 2 + 1 + 5);  // of the one that ended how far it came
}

TEST_CASE("openmetrics: the file is whole, and of one writer") {
  const TempFolder folder;
  const std::string path = folder / "job.prom";
  std::filesystem::create_directories(folder.path() / "telemetry");
  run::RingText ring(200, R"({"host": "h", "pid": 1, "rank": 5, "world_size": 8, "rank_source": "x"})");
  ring.add(0, 0, 0, run::RingText::kClock);
  for (int step = 0; step < 100; step++) ring.add(1000 * step, step < 60 ? 900 : 100, step, run::RingText::kStep, 4);
  folder.put("telemetry/" + run::host_in_names() + "_1.ring", ring.bytes());
  folder.put("telemetry/elsewhere_1.ring", ring.bytes());
  OpenMetricsFile first(path, "j", folder.path().string());
  first.write({});
  CHECK(first.problem().empty());
  const auto found = read_strictly(whole_file(path));
  CHECK(found.at("stepscope_steps_total{job=\"j\",host=\"" + run::host_name() + "\",rank=\"5\"}") == 100);
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  {
    OpenMetricsFile second(path, "other", folder.path().string());
    second.write({});
    CHECK(second.problem().find("another stepscope") != std::string::npos);
  }
  first.write({});  // again and again
  CHECK(first.problem().empty());
  CHECK(whole_file(path).find("job=\"other\"") == std::string::npos);
  OpenMetricsFile nowhere(folder / "none/job.prom", "j", folder.path().string());
  nowhere.write({});
  CHECK(nowhere.problem().find("No such file") != std::string::npos);
}

TEST_CASE("openmetrics: who ended makes room for the next") {
  const TempFolder folder;
  const std::string path = folder / "job.prom";
  OpenMetricsFile(path, "first", folder.path().string()).write({});
  OpenMetricsFile next(path, "next", folder.path().string());
  next.write({});
  CHECK(next.problem().empty());
}

}  // namespace stepscope::collect::telemetry
