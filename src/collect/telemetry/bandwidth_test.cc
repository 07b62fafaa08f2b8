// Memory bandwidth on trees of files as resctrl and the counters of memory controllers show themselves.
#include <fcntl.h>
#include <linux/perf_event.h>
#include <unistd.h>
#include <chrono>

#include <array>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/temp_fixture.h"
#include "collect/telemetry/bandwidth/perf_event.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;
using bandwidth::bytes_per_count, bandwidth::cpus_in, bandwidth::event_code, bandwidth::EventCode;

void put_traffic(const fs::path& group, const std::string& domain, const std::string& all, const std::string& local) {
  const fs::path folder = group / "mon_data" / ("mon_L3_" + domain);
  put(folder / "llc_occupancy", "1000\n");
  put(folder / "mbm_total_bytes", all + "\n");
  put(folder / "mbm_local_bytes", local + "\n");
}

Roots roots_at(const fs::path& folder) { return Roots{(folder / "proc").string(), (folder / "sys").string()}; }

// Counters as the kernel would open them: each is a pipe that a test writes readings into.
struct StandInPerf {
  struct Opened {
    unsigned type;
    std::uint64_t config;
    int cpu;
    int write_end;
  };
  std::vector<Opened> all;
  int refuses = 0;

  ~StandInPerf() {
    for (const Opened& one : all) close(one.write_end);
  }
  void serve(Roots& roots) {
    roots.perf_event = [this](perf_event_attr& wanted, int cpu) {
      std::array<int, 2> ends{};
      if (refuses != 0 || pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) {
        errno = refuses;
        return -1;
      }
      all.push_back({wanted.type, wanted.config, cpu, ends[1]});
      return ends[0];
    };
  }
  void tell(std::uint64_t config, int cpu, std::uint64_t count, std::uint64_t enabled, std::uint64_t running) {
    for (const Opened& one : all) {
      const std::array<std::uint64_t, 3> reading{count, enabled, running};
      if (one.config == config && one.cpu == cpu) {
        REQUIRE(write(one.write_end, reading.data(), sizeof reading) == sizeof reading);
      }
    }
  }
};

void put_imc(const fs::path& device, int type) {
  put(device / "type", std::to_string(type) + "\n");
  put(device / "cpumask", "0,24\n");
  put(device / "format/event", "config:0-7\n");
  put(device / "format/umask", "config:8-15\n");
  put(device / "events/cas_count_read", "event=0x04,umask=0x03\n");
  put(device / "events/cas_count_read.scale", "6.103515625e-5\n");
  put(device / "events/cas_count_read.unit", "MiB\n");
  put(device / "events/cas_count_write", "event=0x04,umask=0x0c\n");
  put(device / "events/cas_count_write.scale", "6.103515625e-5\n");
  put(device / "events/cas_count_write.unit", "MiB\n");
}

void put_packages(const fs::path& sys) {
  put(sys / "devices/system/cpu/cpu0/topology/physical_package_id", "0\n");
  put(sys / "devices/system/cpu/cpu24/topology/physical_package_id", "1\n");
}

}  // namespace

TEST_CASE("telemetry: bandwidth of all groups of resctrl, and what of it is remote") {
  const TempFolder folder;
  const fs::path resctrl = folder.path() / "sys/fs/resctrl";
  put_traffic(resctrl, "00", "1000", "700");
  put_traffic(resctrl, "01", "50", "50");
  put_traffic(resctrl / "batch", "00", "10", "4");                  // a group of control
  put_traffic(resctrl / "mon_groups/other", "00", "9999", "9999");  // is in the first already
  put(resctrl / "info/L3_MON/num_rmids", "256\n");
  Heard heard;
  const auto source = opened("bandwidth", roots_at(folder.path()));
  source->sample(heard);
  CHECK(heard.values == std::map<std::string, double>{{"memory_traffic L3 0", 1010},
                                                      {"memory_traffic_remote L3 0", 306},
                                                      {"memory_traffic L3 1", 50},
                                                      {"memory_traffic_remote L3 1", 0}});
  put_traffic(resctrl, "00", "Unavailable", "Unavailable");
  put_traffic(resctrl, "01", "60", "Error");
  heard.values.clear();
  source->sample(heard);
  CHECK(heard.values == std::map<std::string, double>{{"memory_traffic L3 1", 60}});
  put_traffic(resctrl, "00", "200", "100");  // a group in it was removed, with what it had counted
  put_traffic(resctrl, "01", "70", "75");    // read a moment later
  source->sample(heard);
  CHECK(heard.values["memory_traffic L3 0"] == 1010);
  CHECK(heard.values["memory_traffic_remote L3 0"] == 306);
  CHECK(heard.values["memory_traffic_remote L3 1"] == 0);
  for (const char* local : {"70", "80", "70", "80"}) {  // shakes, as the two are not read at once
    put_traffic(resctrl, "01", "80", local);
    source->sample(heard);
  }
  CHECK(heard.values["memory_traffic_remote L3 1"] == 10);
  put_traffic(resctrl, "00", "300", "150");
  put_traffic(resctrl, "01", std::string(20'000, '9'), "-5");
  heard.values.clear();
  source->sample(heard);
  CHECK(heard.values ==
        std::map<std::string, double>{{"memory_traffic L3 0", 1110}, {"memory_traffic_remote L3 0", 356}});
}

TEST_CASE("telemetry: bandwidth of Intel's memory controllers, by socket") {
  const TempFolder folder;
  const fs::path devices = folder.path() / "sys/bus/event_source/devices";
  put_imc(devices / "uncore_imc_0", 13);
  put_imc(devices / "uncore_imc_1", 14);
  put_imc(devices / "uncore_imc_free_running_0", 15);  // tells the same again
  put(devices / "uncore_imc_free_running_0/events/data_read", "event=0xff,umask=0x20\n");
  put(devices / "uncore_imc_free_running_0/events/data_read.scale", "1\n");
  put(devices / "uncore_imc_free_running_0/events/data_read.unit", "MiB\n");
  put(devices / "uncore_upi_0/type", "16\n");
  put(devices / "uncore_upi_0/cpumask", "0,24\n");
  put(devices / "uncore_upi_0/format/event", "config:0-7\n");
  put(devices / "uncore_upi_0/format/umask", "config:8-15\n");
  put_packages(folder.path() / "sys");
  Roots roots = roots_at(folder.path());
  StandInPerf perf;
  perf.serve(roots);
  Heard heard;
  const auto source = opened("bandwidth", roots);
  CHECK(perf.all.size() == 10);
  source->sample(heard);
  CHECK(heard.values.empty());  // nobody tells anything yet
  perf.tell(0x0304, 0, 1000, 50, 50);
  perf.tell(0x0304, 24, 1, 50, 50);
  perf.tell(0x0c04, 0, 10, 50, 25);  // half of the time on the hardware
  perf.tell(0x0c04, 24, 0, 50, 0);   // none
  perf.tell(0x0f02, 0, 9, 50, 50);
  source->sample(heard);
  CHECK(heard.values == std::map<std::string, double>{{"memory_read package 0", 2 * 1000 * 64},
                                                      {"memory_read package 1", 2 * 64},
                                                      {"memory_written package 0", 2 * 10 * 2 * 64},
                                                      {"socket_link_sent package 0", 64}});
  perf.tell(0x0304, 0, 1500, 100, 100);
  perf.tell(0x0304, 24, 0, 60, 60);  // fell: no step
  perf.tell(0x0c04, 0, 20, 100, 75);
  source->sample(heard);
  CHECK(heard.values["memory_read package 0"] == 2 * 1500 * 64);
  CHECK(heard.values["memory_read package 1"] == 2 * 64);
  CHECK(heard.values["memory_written package 0"] == 2 * (20 + 10) * 64);
}

TEST_CASE("telemetry: bandwidth of AMD's memory controllers, whose events the kernel does not list") {
  const TempFolder folder;
  const fs::path device = folder.path() / "sys/bus/event_source/devices/amd_umc_3";
  put(device / "type", "20\n");
  put(device / "cpumask", "0\n");
  put(device / "format/event", "config:0-7\n");
  put(device / "format/rdwrmask", "config:8-9\n");
  put_packages(folder.path() / "sys");
  Roots roots = roots_at(folder.path());
  StandInPerf perf;
  perf.serve(roots);
  Heard heard;
  const auto source = opened("bandwidth", roots);
  perf.tell(0x10a, 0, 5, 10, 10);
  perf.tell(0x20a, 0, 7, 10, 10);
  source->sample(heard);
  CHECK(heard.values ==
        std::map<std::string, double>{{"memory_read package 0", 320}, {"memory_written package 0", 448}});
}

TEST_CASE("telemetry: bandwidth of Arm's memory, whose events have no scale in the kernel's files") {
  const TempFolder folder;
  const fs::path devices = folder.path() / "sys/bus/event_source/devices";
  const auto put_device = [&](const char* name, int type, const char* read, const char* written) {
    put(devices / name / "type", std::to_string(type) + "\n");
    put(devices / name / "cpumask", "0\n");
    put(devices / name / "format/event", "config:0-31\n");
    put(devices / name / "events" / read, "event=0x84\n");
    put(devices / name / "events" / written, "event=0x83\n");
  };
  put_packages(folder.path() / "sys");
  SUBCASE("Kunpeng") {
    put_device("hisi_sccl1_ddrc0", 30, "flux_rd", "flux_wr");
    put_device("hisi_sccl1_hha0", 31, "flux_rd", "flux_wr");  // which is no controller of memory
    put_device("hisi_sccl_ddrc", 32, "flux_rd", "flux_wr");
  }
  SUBCASE("Grace") { put_device("nvidia_scf_pmu_0", 30, "cmem_rd_data", "cmem_wb_data"); }
  Roots roots = roots_at(folder.path());
  StandInPerf perf;
  perf.serve(roots);
  Heard heard;
  const auto source = opened("bandwidth", roots);
  CHECK(perf.all.size() == 2);
  perf.tell(0x84, 0, 5, 10, 10);
  perf.tell(0x83, 0, 7, 10, 10);
  source->sample(heard);
  CHECK(heard.values ==
        std::map<std::string, double>{{"memory_read package 0", 160}, {"memory_written package 0", 224}});
}

TEST_CASE("telemetry: the kernel counts by a request that was made from its own files") {
  const TempFolder folder;
  const fs::path device = folder.path() / "sys/bus/event_source/devices/uncore_imc_0";
  put_imc(device, PERF_TYPE_SOFTWARE);  // its clock in place of a memory controller
  put(device / "cpumask", "0\n");
  put(device / "format/clock", "config:0-63\n");
  put(device / "events/cas_count_read", "clock=0\n");
  fs::remove(device / "events/cas_count_write");
  const Roots roots = roots_at(folder.path());
  if (const std::string why = why_absent("bandwidth", roots); !why.empty()) {
    CHECK(why.find("perf_event_paranoid") != std::string::npos);
    return;
  }
  Heard heard;
  const auto source = opened("bandwidth", roots);
  source->sample(heard);
  const double before = heard.values["memory_read cpu 0"];
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  source->sample(heard);
  CHECK(heard.values["memory_read cpu 0"] > before + 64 * 15e6);
  CHECK(heard.values.size() == 1);
}

TEST_CASE("telemetry: events of devices, damaged or not") {
  const TempFolder folder;
  const fs::path device = folder.path() / "cmn";
  put(device / "format/event", "config:0-7,32-35\n");
  put(device / "format/inv", "config:23\n");
  put(device / "format/node", "config1:0-15\n");
  put(device / "format/all", "config2:0-63\n");
  put(device / "format/bad", "config:60-70\n");
  put(device / "format/empty", "");
  const auto code = [&](const std::string& words) { return event_code(device.string(), words); };
  REQUIRE(code("event=0x5ab,inv,node=7,all=0xffffffffffffffff\n"));
  const EventCode made = *code("event=0x5ab,inv,node=7,all=0xffffffffffffffff\n");
  CHECK(made.config[0] == (0xabULL | 1ULL << 23 | 5ULL << 32));
  CHECK(made.config[1] == 7);
  CHECK(made.config[2] == ~0ULL);
  CHECK(code("config=0x10,config1=3")->config[1] == 3);
  for (const char* words : {"", "\n", "event=0x1000", "inv=2", "bad=1", "empty=1", "none=1", "event=", "event=0x", "=1",
                            "event=0x1,", "event=?", "../format/inv=1"}) {
    const bool is_made = code(words).has_value();
    CHECK_MESSAGE(is_made == (std::string_view(words) == "event=0x1,"), std::string(words));
  }
  CHECK(cpus_in("0-2,9\n") == std::vector{0, 1, 2, 9});
  for (const char* list : {"", "3-1", "x", "0-", "0-99999999999", "-1"}) CHECK(cpus_in(list).empty());
  put(device / "events/a.scale", "0.5\n");
  put(device / "events/a.unit", "KiB\n");
  CHECK(bytes_per_count(device.string(), "a") == 512);
  for (const char* scale : {"", "-1", "nan", "inf", "x", "1e999"}) {
    put(device / "events/a.scale", scale);
    CHECK_MESSAGE(!bytes_per_count(device.string(), "a"), std::string(scale));
  }
  put(device / "events/a.scale", "1");
  put(device / "events/a.unit", "Joules\n");
  CHECK_FALSE(bytes_per_count(device.string(), "a"));
}

TEST_CASE("telemetry: why there is no bandwidth") {
  const TempFolder folder;
  Roots roots = roots_at(folder.path());
  const std::string nothing = why_absent("bandwidth", roots);
  CHECK(nothing.find("neither resctrl nor counters") != std::string::npos);
  CHECK(nothing.find("mount -t resctrl") != std::string::npos);
  CHECK(nothing.find("collector numa") != std::string::npos);
  fs::create_directories(folder.path() / "sys/fs/resctrl");  // not mounted
  put_imc(folder.path() / "sys/bus/event_source/devices/uncore_imc_0", 13);
  StandInPerf perf;
  perf.serve(roots);
  perf.refuses = EACCES;
  CHECK(why_absent("bandwidth", roots).find("CAP_PERFMON") != std::string::npos);
  perf.refuses = EBUSY;
  CHECK(why_absent("bandwidth", roots).find("Stop other programs") != std::string::npos);
  put(folder.path() / "sys/bus/event_source/devices/uncore_imc_0/type", "");
  CHECK(why_absent("bandwidth", roots).find("neither resctrl") != std::string::npos);
}

TEST_CASE("telemetry: bandwidth of a rank, in a group of resctrl that is there as long as it is watched") {
  const TempFolder folder;
  const fs::path resctrl = folder.path() / "sys/fs/resctrl", proc = folder.path() / "proc";
  const std::string own = "stepscope-" + std::to_string(getpid()) + "-";
  Roots roots = roots_at(folder.path());
  CHECK(why_absent("rank_bandwidth", roots).find("resctrl is not mounted") != std::string::npos);
  put_traffic(resctrl, "00", "1000", "700");
  CHECK(why_absent("rank_bandwidth", roots).find("no monitoring group") != std::string::npos);
  fs::create_directories(resctrl / "mon_groups/stepscope-999999999-0");  // of one that was killed
  fs::create_directories(resctrl / "mon_groups/somebody");
  for (const char* thread : {"70/task/70", "70/task/75", "71/task/71", "72/task/72", "73/task/73"})
    fs::create_directories(proc / thread);
  Heard heard;
  {
    const auto source = opened("rank_bandwidth", roots);
    CHECK_FALSE(fs::exists(resctrl / "mon_groups/stepscope-999999999-0"));
    source->follow({{"rank 0", {{70, 1, 1}, {71, 1, 70}}}});
    const fs::path group = resctrl / "mon_groups" / (own + "0");
    const auto tasks = [&] {
      std::ifstream in(group / "tasks");
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    CHECK(tasks() == "70\n75\n71\n");
    source->sample(heard);
    CHECK(heard.values.empty());
    put_traffic(group, "00", "500", "100");
    put_traffic(group, "01", "30", "30");
    source->follow({{"rank 0", {{70, 1, 1}, {71, 1, 70}, {72, 1, 70}}}});
    CHECK(tasks() == "70\n75\n71\n72\n");
    source->sample(heard);
    CHECK(heard.values ==
          std::map<std::string, double>{{"memory_traffic rank 0", 530}, {"memory_traffic_remote rank 0", 400}});
    put_traffic(group, "01", "Unavailable", "30");
    heard.values.clear();
    source->sample(heard);
    CHECK(heard.values.empty());
    put_traffic(group, "01", "30", "30");
    source->sample(heard);
    CHECK(heard.values.size() == 2);
    fs::remove(group / "tasks");
    fs::create_directory(group / "tasks");  // which takes no thread
    source->follow({{"rank 0", {{70, 1, 1}, {71, 1, 70}, {72, 1, 70}, {73, 1, 70}}}});
    heard.values.clear();
    source->sample(heard);
    CHECK(heard.values.empty());         // of the others alone it would be too little
    fs::remove_all(group / "mon_data");  // as the kernel's own files, which are no hindrance
    fs::remove(group / "tasks");
  }
  CHECK_FALSE(fs::exists(resctrl / "mon_groups" / (own + "0")));
  CHECK(fs::exists(resctrl / "mon_groups/somebody"));
}

}  // namespace stepscope::collect::telemetry
