// NVIDIA GPUs by the stand-in for their driver's library.
#include <filesystem>

#include "base/temp_fixture.h"
#include "collect/telemetry/nvml_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;

// As the host's own namespace, or a container's.
void put_namespace(const fs::path& proc, bool is_host) {
  fs::create_directories(proc / "self/ns");
  fs::remove(proc / "self/ns/pid");
  fs::create_symlink(is_host ? "pid:[4026531836]" : "pid:[4026532999]", proc / "self/ns/pid");
}

void put_open_file(const fs::path& proc, int pid, int number, const std::string& file) {
  fs::create_directories(proc / std::to_string(pid) / "fd");
  fs::create_symlink(file, proc / std::to_string(pid) / "fd" / std::to_string(number));
}

void set_one_gpu(StandInNvml& nvml) {
  nvml.set("gpus", 1);
  nvml.set("utilization.0", 87);
  nvml.set("memory_utilization.0", 25);
  nvml.set("used.0", 300);
  nvml.set("energy.0", 5'000'000'000);
  nvml.set("clock1.0", 1980);
}

}  // namespace

TEST_CASE("telemetry: a GPU's values, in their units") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  set_one_gpu(nvml);
  nvml.set("field186.0", 512'500);
  nvml.set("field186.type", 0);
  nvml.set("field82.0", 55);
  nvml.set("field74.0", 7000);
  nvml.set("field138.0", 3);
  nvml.set("field139.0", 4);
  nvml.set("field202.0", 99);  // tells the same again
  nvml.set("power_limit.0", 700'000);
  nvml.set("clock2.0", 2619);
  nvml.set("temperature.0", 41);
  nvml.set("ecc10.0", 2);
  nvml.set("replays.0", 6);
  nvml.set("reasons.0", 0x4 | 0x40 | 0x8);
  Heard heard;
  const auto source = opened("gpu", at.roots);
  source->sample(heard);
  const std::map<std::string, double> expected{
      {"gpu_utilization gpu 0", 0.87},
      {"gpu_memory_utilization gpu 0", 0.25},
      {"gpu_memory_used gpu 0", 300},
      {"gpu_memory_free gpu 0", 600},
      {"gpu_memory_total gpu 0", 1000},
      {"gpu_energy gpu 0", 5e12},
      {"gpu_power gpu 0", 512.5},
      {"gpu_power_limit gpu 0", 700},
      {"gpu_sm_clock gpu 0", 1.98e9},
      {"gpu_memory_clock gpu 0", 2.619e9},
      {"gpu_temperature gpu 0", 41},
      {"gpu_memory_temperature gpu 0", 55},
      {"gpu_limited_by_power gpu 0", 1},
      {"gpu_limited_by_heat gpu 0", 1},
      {"gpu_limited_by_hardware gpu 0", 1},
      {"gpu_limited_by_setting gpu 0", 0},
      {"gpu_idle gpu 0", 0},
      {"gpu_power_limited_time gpu 0", 7000},
      {"gpu_ecc_uncorrected gpu 0", 2},
      {"gpu_pcie_replays gpu 0", 6},
      {"gpu_nvlink_sent gpu 0", 3 * 1024},
      {"gpu_nvlink_received gpu 0", 4 * 1024},
  };
  CHECK(heard.values == expected);
}

TEST_CASE("telemetry: what a GPU does not tell has no sample, and what is slow to tell has one a second") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  set_one_gpu(nvml);
  nvml.set("power.0", 90'000);  // no field of it
  nvml.set("temperature.0", 40);
  nvml.set("utilization.0.error", 3);  // as of MIG
  nvml.set("field82.0", 0);            // no sensor
  nvml.set("field74.0", -1);
  nvml.set("field74.type", 5);  // a signed number
  nvml.set("field75.0", 1);
  nvml.set("field75.type", 9);  // of a type that we do not know
  Heard heard;
  const auto source = opened("gpu", at.roots);
  source->sample(heard);
  CHECK_FALSE(heard.values.contains("gpu_utilization gpu 0"));
  CHECK_FALSE(heard.values.contains("gpu_memory_utilization gpu 0"));
  CHECK_FALSE(heard.values.contains("gpu_memory_temperature gpu 0"));
  CHECK_FALSE(heard.values.contains("gpu_ecc_uncorrected gpu 0"));
  CHECK_FALSE(heard.values.contains("gpu_idle gpu 0"));
  CHECK_FALSE(heard.values.contains("gpu_power_limited_time gpu 0"));
  CHECK_FALSE(heard.values.contains("gpu_heat_limited_time gpu 0"));
  CHECK(heard.values["gpu_power gpu 0"] == 90);
  CHECK(heard.values["gpu_temperature gpu 0"] == 40);
  nvml.set("temperature.0", 50);
  nvml.set("power.0", 95'000);
  at.now_ns += kSecond / 5;
  source->sample(heard);
  CHECK(heard.values["gpu_power gpu 0"] == 95);
  CHECK(heard.values["gpu_temperature gpu 0"] == 40);
  at.now_ns += kSecond;
  source->sample(heard);
  CHECK(heard.values["gpu_temperature gpu 0"] == 50);
}

TEST_CASE("telemetry: counters of a GPU never fall, and those of PCIe that may be narrow are left out") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  set_one_gpu(nvml);
  nvml.set("field197.0", 4'000'000'000);
  nvml.set("field198.0", 5'000'000'000);
  Heard heard;
  const auto source = opened("gpu", at.roots);
  source->sample(heard);
  CHECK_FALSE(heard.values.contains("gpu_pcie_sent gpu 0"));
  CHECK(heard.values["gpu_pcie_received gpu 0"] == 5e9);
  nvml.set("energy.0", 100);  // the driver was loaded anew
  nvml.set("field198.0", 1000);
  source->sample(heard);
  CHECK(heard.values["gpu_energy gpu 0"] == 5e12);
  CHECK(heard.values["gpu_pcie_received gpu 0"] == 5e9);
  nvml.set("energy.0", 103);
  nvml.set("field198.0", 3000);
  source->sample(heard);
  CHECK(heard.values["gpu_energy gpu 0"] == 5e12 + 3000);
  CHECK(heard.values["gpu_pcie_received gpu 0"] == 5e9 + 2000);
  nvml.set("energy.0", -1);  // all bits: no number
  nvml.set("field198.0", -1);
  source->sample(heard);
  CHECK(heard.values["gpu_energy gpu 0"] == 5e12 + 3000);
  CHECK(heard.values["gpu_pcie_received gpu 0"] == 5e9 + 2000);
}

TEST_CASE("telemetry: a GPU that is lost has no more samples, and the others go on") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  set_one_gpu(nvml);
  nvml.set("gpus", 3);
  nvml.set("handle.2.error", 15);  // one that was lost before
  nvml.set("energy.1", 10);
  nvml.set("utilization.1", 50);
  nvml.set("memory_utilization.1", 0);
  Heard heard;
  const auto source = opened("gpu", at.roots);
  source->sample(heard);
  CHECK(heard.values.contains("gpu_utilization gpu 1"));
  CHECK_FALSE(heard.values.contains("gpu_energy gpu 2"));
  nvml.set("lost.0", 15);
  heard.values.clear();
  source->sample(heard);
  CHECK(heard.values == std::map<std::string, double>{{"gpu_energy gpu 1", 10'000},
                                                      {"gpu_utilization gpu 1", 0.5},
                                                      {"gpu_memory_utilization gpu 1", 0}});
  nvml.unset("lost.0");  // it would answer again: with counters of another life
  heard.values.clear();
  source->sample(heard);
  CHECK_FALSE(heard.values.contains("gpu_energy gpu 0"));
}

TEST_CASE("telemetry: instances of MIG have their memory") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  put_namespace(folder.path() / "proc", true);
  nvml.set("gpus", 1);
  nvml.set("used.0", 700);
  nvml.set("most_mig.0", 7);
  nvml.set("mig.0.1", 1);
  nvml.set("used.0.mig.1", 200);
  nvml.set("processes.0", 1);  // told of the whole only to administrators
  nvml.set("pid.0.0", 50);
  nvml.set("processes.0.mig.1", 1);
  nvml.set("pid.0.mig.1.0", 50);
  nvml.set("used.0.mig.1.0", 64);
  Heard heard;
  const auto source = opened("gpu", at.roots);
  source->follow({{"rank 0", {{50, 1, 1}}}});
  source->sample(heard);
  CHECK(heard.values["gpu_memory_used gpu 0"] == 700);
  CHECK(heard.values["gpu_memory_used gpu 0 mig 1"] == 300);
  CHECK(heard.values["gpu_memory rank 0"] == 64);
  CHECK_FALSE(heard.values.contains("gpu_utilization gpu 0"));
}

TEST_CASE("telemetry: memory of GPUs by rank, whatever the driver's entries look like") {
  for (const long long stride : {16, 24, 32, 20}) {
    const TempFolder folder;
    StandInNvml nvml;
    NvmlRoots at(nvml, folder.path());
    put_namespace(folder.path() / "proc", true);
    nvml.set("gpus", 2);
    nvml.set("stride", stride);
    nvml.set("processes.0", 1);
    nvml.set("pid.0.0", 70);
    nvml.set("used.0.0", 10);
    nvml.set("processes.1", 80);  // more than fit at first
    for (int i = 0; i < 80; i++) {
      nvml.set("pid.1." + std::to_string(i), i == 60 ? 70 : i == 70 ? 71 : 1000 + i);
      nvml.set("used.1." + std::to_string(i), 100 + i);
    }
    nvml.set("used.1.71", -1);  // not available
    Heard heard;
    const auto source = opened("gpu", at.roots);
    source->follow({{"rank 4", {{70, 1, 1}, {71, 1, 70}}}, {"rank 5", {{72, 1, 1}, {1071, 1, 1}}}});
    source->sample(heard);
    if (stride == 20) {  // no entry that we know: told only where there is just one
      CHECK(heard.values["gpu_memory rank 4"] == 10);
      continue;
    }
    CHECK(heard.values["gpu_memory rank 4"] == 10 + 160 + 170);
    CHECK(heard.values["gpu_index rank 4"] == 1);
    CHECK_FALSE(heard.values.contains("gpu_memory rank 5"));
  }
}

TEST_CASE("telemetry: in a container a process is known by its number only if it has a GPU open") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc";
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  put_namespace(proc, false);
  nvml.set("gpus", 1);
  nvml.set("processes.0", 4);
  for (int i = 0; i < 4; i++) {
    nvml.set("pid.0." + std::to_string(i), 70 + i);
    nvml.set("used.0." + std::to_string(i), 1);
  }
  put_open_file(proc, 70, 3, "/dev/nvidiactl");  // a monitor
  put_open_file(proc, 71, 3, "/dev/null");
  put_open_file(proc, 71, 9, "/dev/nvidia2");
  put_open_file(proc, 500, 9, "/dev/nvidia2");  // 73 in its own namespace
  put(proc / "500/status", "Name:\tpython\nPid:\t500\nNSpid:\t500\t73\nUid:\t0\n");
  put(proc / "72/status", "NSpid:");  // cut off
  Heard heard;
  const auto source = opened("gpu", at.roots);
  source->follow(
      {{"rank 0", {{70, 1, 1}}}, {"rank 1", {{71, 1, 1}}}, {"rank 2", {{72, 1, 1}}}, {"rank 3", {{500, 1, 1}}}});
  source->sample(heard);
  CHECK_FALSE(heard.values.contains("gpu_memory rank 0"));
  CHECK(heard.values["gpu_memory rank 1"] == 1);
  CHECK_FALSE(heard.values.contains("gpu_memory rank 2"));
  CHECK(heard.values["gpu_memory rank 3"] == 1);
}

TEST_CASE("telemetry: an old driver tells what it knows") {
  const TempFolder folder;
  StandInNvml nvml("stand_in_nvml_old");
  NvmlRoots at(nvml, folder.path());
  put_namespace(folder.path() / "proc", true);
  set_one_gpu(nvml);
  nvml.set("power.0", 250'000);
  nvml.set("reasons.0", 0x1);
  nvml.set("processes.0", 1);
  nvml.set("pid.0.0", 9);
  nvml.set("used.0.0", 77);
  Heard heard;
  const auto source = opened("gpu", at.roots);
  source->follow({{"rank 0", {{9, 1, 1}}}});
  source->sample(heard);
  CHECK(heard.values["gpu_memory_used gpu 0"] == 400);  // with what the driver keeps
  CHECK(heard.values["gpu_power gpu 0"] == 250);
  CHECK(heard.values["gpu_idle gpu 0"] == 1);
  CHECK(heard.values["gpu_memory rank 0"] == 77);
}

TEST_CASE("telemetry: why there are no NVIDIA GPUs, in a sentence each") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  CHECK(why_absent("gpu", at.roots).find("sees no GPU") != std::string::npos);
  nvml.set("gpus", 1);
  nvml.set("handle.0.error", 4);
  CHECK(why_absent("gpu", at.roots).find("may not use") != std::string::npos);
  const std::map<int, std::string> sentences{{9, "driver is not loaded"},
                                             {18, "of different versions"},
                                             {4, "/dev/nvidiactl"},
                                             {17, "--gpus all"},
                                             {999, "Stand-in Error"}};
  for (const auto& [error, sentence] : sentences) {
    nvml.set("init.error", error);
    const std::string text = why_absent("gpu", at.roots);
    CHECK_MESSAGE(text.find(sentence) != std::string::npos, text);
  }
  at.roots.nvml = "libnone-of-that-name.so.1";
  CHECK(why_absent("gpu", at.roots).find("Install the NVIDIA driver") != std::string::npos);
  at.roots.nvml = folder.put("broken.so",
                             "\x7f"
                             "ELF and no more");
  CHECK(why_absent("gpu", at.roots).find("cannot be loaded") != std::string::npos);
  at.roots.nvml = "libc.so.6";
  CHECK(why_absent("gpu", at.roots).find("no library of an NVIDIA driver") != std::string::npos);
}

TEST_CASE("telemetry: the driver's library is shut down as often as it was initialized") {
  const TempFolder folder;
  StandInNvml nvml;
  NvmlRoots at(nvml, folder.path());
  set_one_gpu(nvml);
  {
    const auto source = opened("gpu", at.roots);
    CHECK(nvml.get("open") == 1);
  }
  CHECK(nvml.get("open") == 0);
}

}  // namespace stepscope::collect::telemetry
