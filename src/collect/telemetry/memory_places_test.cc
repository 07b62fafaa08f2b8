// Where memory lies: NUMA nodes, maps of ranks, and their share of what they share.
#include <chrono>
#include <thread>

#include "base/temp_fixture.h"
#include "collect/telemetry/sampler.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

void put_node(const fs::path& sys, int number, int free_kb, int remote) {
  const std::string begin = "Node " + std::to_string(number) + " ";
  const fs::path folder = sys / "devices/system/node" / ("node" + std::to_string(number));
  put(folder / "meminfo", "\n" + begin + "MemTotal:       1000 kB\n" + begin +
                              "MemFree:         " + std::to_string(free_kb) + " kB\n" + begin +
                              "MemUsed:         " + std::to_string(1000 - free_kb) + " kB\n");
  put(folder / "numastat", "numa_hit 5\nnuma_miss 0\nnuma_foreign 3\ninterleave_hit 1\nlocal_node 7\nother_node " +
                               std::to_string(remote) + "\n");
}

const std::vector<Group> kRanks{{"rank 0", {{7, 1, 1}, {8, 2, 7}}}, {"rank 1", {{9, 3, 1}}}};

}  // namespace

TEST_CASE("telemetry: NUMA nodes with memory, and none of it where there is one") {
  const TempFolder folder;
  const fs::path sys = folder.path() / "sys";
  const Roots roots{(folder.path() / "proc").string(), sys.string(), {}};
  CHECK(why_absent("numa", roots).find("no NUMA node") != std::string::npos);
  put_node(sys, 0, 400, 10);
  put(sys / "devices/system/node/node1/meminfo", "Node 1 MemTotal:  0 kB\n");  // a GPU's
  put(sys / "devices/system/node/nodes", "");
  put(sys / "devices/system/node/node-1/meminfo", "Node -1 MemTotal:  9 kB\n");
  CHECK(why_absent("numa", roots).find("one NUMA node") != std::string::npos);
  put_node(sys, 10, 100, 20);
  put(folder.path() / "proc/vmstat", "numa_hit 1\nnuma_pages_migrated 2\n");
  const auto source = opened("numa", roots);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values["memory_free numa 0"] == 400 * 1024);
  CHECK(heard.values["memory_used numa 10"] == 900 * 1024);
  CHECK_FALSE(heard.values.contains("memory_free numa 1"));
  put_node(sys, 10, 100, 27);
  put(folder.path() / "proc/vmstat", "numa_pages_migrated 3\n");
  source->sample(heard);
  CHECK(heard.values["numa_remote_allocations numa 10"] == 7);
  CHECK(heard.values["numa_remote_allocations numa 0"] == 0);
  CHECK(heard.values["numa_migrated host"] >= 4096);
  fs::remove_all(sys);
  put(folder.path() / "sys/devices/system/node/node0/numastat", std::string(50'000, '\xff'));
  source->sample(heard);
}

TEST_CASE("telemetry: on which node the memory of a rank lies") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc";
  const Roots roots{proc.string(), "", {}};
  CHECK(why_absent("numa_maps", roots).find("CONFIG_NUMA") != std::string::npos);
  put(proc / "self/numa_maps", "55 default\n");
  std::string many;
  for (int i = 0; i < 5000; i++) many += "7f00 default anon=1 dirty=1 active=0 N0=1 kernelpagesize_kB=4\n";
  put(proc / "7/numa_maps", many + "7f01 bind:1 huge anon=2 N0=1 N1=2 kernelpagesize_kB=2048\n7f02 default\n");
  put(proc / "8/numa_maps", "7f00 default file=/N3=5 N1=3 kernelpagesize_kB=4\n");
  put(proc / "9/numa_maps", "7f00 default Nx=3 N2= N=1 N5=9\nN1=99999999999999999999 kernelpagesize_kB=4\nN1");
  const auto source = opened("numa_maps", roots);
  source->follow(kRanks);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values["memory_on_numa_0 rank 0"] == (5000 * 4 + 2048) * 1024.0);
  CHECK(heard.values["memory_on_numa_1 rank 0"] == (2 * 2048 + 3 * 4) * 1024.0);
  CHECK(heard.values.size() == 2);
  put(proc / "7/numa_maps", "7f00 default N1=1 kernelpagesize_kB=4\n");
  source->sample(heard);
  CHECK(heard.values["memory_on_numa_0 rank 0"] == 0);  // it moved
  CHECK(heard.values["memory_on_numa_1 rank 0"] == 4 * 4 * 1024.0);
  put(proc / "7/numa_maps", "");
  put(proc / "8/numa_maps", "");
  Heard ended;
  source->sample(ended);
  CHECK(ended.values.empty());
}

TEST_CASE("telemetry: the memory of a rank with shared pages by their share") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc";
  const Roots roots{proc.string(), "", {}};
  CHECK(why_absent("pss", roots).find("4.14") != std::string::npos);
  const auto rollup = [](int pss, int own) {
    return "5600-7fff ---p 00000000 00:00 0     [rollup]\nRss:   900 kB\nPss:   " + std::to_string(pss) +
           " kB\nPss_Dirty:  1 kB\nShared_Clean:  100 kB\nShared_Dirty: 20 kB\nPrivate_Clean:  " + std::to_string(own) +
           " kB\nPrivate_Dirty:   5 kB\nSwap: 9 kB\nSwapPss:  2 kB\n";
  };
  put(proc / "self/smaps_rollup", rollup(1, 1));
  put(proc / "7/smaps_rollup", rollup(200, 50));
  put(proc / "8/smaps_rollup", rollup(100, 30));
  put(proc / "9/smaps_rollup", "Pss: many kB\nPrivate_Dirty:");
  const auto source = opened("pss", roots);
  source->follow(kRanks);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values["pss rank 0"] == 300 * 1024);
  CHECK(heard.values["private_memory rank 0"] == 90 * 1024);
  CHECK(heard.values["shared_memory rank 0"] == 240 * 1024);
  CHECK(heard.values["swap_share rank 0"] == 4 * 1024);
  CHECK(heard.values.size() == 4);
}

TEST_CASE("telemetry: what stops a rank's page faults is sampled when asked for, and no more often than it says") {
  for (const Collector& collector : collectors()) {
    if (collector.name == "pss" || collector.name == "numa_maps") CHECK(collector.on_request);
  }
  const TempFolder folder;
  SamplerOptions options;
  options.only = {{"pss", 0}};
  options.interval_ms = 10;
  options.roots.proc = (folder.path() / "proc").string();
  put(folder.path() / "proc/self/smaps_rollup", "Pss:  1 kB\n");
  put(folder.path() / "proc/7/smaps_rollup", "Pss:  1 kB\n");
  auto sampler = Sampler::start(folder.path().string(), options, [] { return kRanks; });
  REQUIRE(sampler);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  sampler->reset();
  const auto files = run::sample_files(folder.path().string());
  REQUIRE(files.size() == 1);
  const auto read = run::read_samples(files[0]);
  REQUIRE(read);
  REQUIRE(read->series.size() == 1);
  CHECK(read->series[0].samples.size() == 1);
}

}  // namespace stepscope::collect::telemetry
