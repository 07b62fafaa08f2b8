// AMD GPUs on trees of files as two kernels have them.
#include <filesystem>

#include "base/temp_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSecond = 1'000'000'000;

// A workstation's card under 5.4: no sensor of clocks, power as a mean.
void put_older(const fs::path& drm) {
  const fs::path card = drm / "card1";
  put(card / "device/vendor", "0x1002\n");
  put(card / "device/gpu_busy_percent", "37\n");
  put(card / "device/mem_info_vram_used", "1073741824\n");
  put(card / "device/mem_info_vram_total", "17163091968\n");
  put(card / "device/pp_dpm_sclk", "0: 852Mhz \n1: 991Mhz \n2: 1440Mhz *\n3: 1600Mhz \n");
  put(card / "device/hwmon/hwmon3/power1_average", "180000000\n");
  put(card / "device/hwmon/hwmon3/temp1_input", "56000\n");
  put(drm / "card1-DP-1/status", "connected\n");
}

// An accelerator under 6.8.
void put_newer(const fs::path& drm, const std::string& name, const std::string& place, int minor) {
  const fs::path device = drm / name / "device";
  put(device / "vendor", "0x1002\n");
  put(device / "uevent", "DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_SLOT_NAME=" + place + "\n");
  put(device / "product_name", "AMD Instinct MI300X\n");
  put(device / "gpu_busy_percent", "99\n");
  put(device / "mem_busy_percent", "40\n");
  put(device / "mem_info_vram_used", "2000\n");
  put(device / "mem_info_vram_total", "5000\n");
  put(device / "pcie_replay_count", "3\n");
  put(device / "ras/umc_err_count", "ue: 1\nce: 12\nde: 0\n");
  put(device / "pp_dpm_sclk", "S: 132Mhz *\n");
  put(device / "hwmon/hwmon7/power1_input", "650000000\n");
  put(device / "hwmon/hwmon7/power1_cap", "750000000\n");
  put(device / "hwmon/hwmon7/freq1_input", "2100000000\n");
  put(device / "hwmon/hwmon7/freq2_input", "900000000\n");
  put(device / "hwmon/hwmon7/energy1_input", "1000000\n");
  put(device / "hwmon/hwmon7/temp1_input", "45000\n");
  put(device / "hwmon/hwmon7/temp2_input", "61000\n");
  put(device / "hwmon/hwmon7/temp3_input", "52000\n");
  fs::create_directories(device / "drm" / ("renderD" + std::to_string(minor)));
}

}  // namespace

TEST_CASE("telemetry: an AMD GPU of an older kernel") {
  const TempFolder folder;
  const fs::path drm = folder.path() / "class/drm";
  put_older(drm);
  put(drm / "card0/device/vendor", "0x1a03\n");  // of the board's console
  put(drm / "card0/device/gpu_busy_percent", "1\n");
  Roots roots{(folder.path() / "proc").string(), folder.path().string()};
  Heard heard;
  const auto source = opened("amd_gpu", roots);
  source->sample(heard);
  CHECK(heard.values == std::map<std::string, double>{{"gpu_utilization amd gpu 0", 0.37},
                                                      {"gpu_memory_used amd gpu 0", 1073741824},
                                                      {"gpu_memory_total amd gpu 0", 17163091968},
                                                      {"gpu_power amd gpu 0", 180},
                                                      {"gpu_temperature amd gpu 0", 56},
                                                      {"gpu_sm_clock amd gpu 0", 1.44e9}});
}

TEST_CASE("telemetry: AMD GPUs of a newer kernel, in the order of their places, and their ranks") {
  const TempFolder folder;
  const fs::path drm = folder.path() / "class/drm", kfd = folder.path() / "class/kfd/kfd",
                 proc = folder.path() / "proc";
  put_newer(drm, "card1", "0000:c1:00.0", 129);
  put_newer(drm, "card2", "0000:05:00.0", 128);
  put(drm / "card2/device/gpu_busy_percent", "5\n");
  put(kfd / "topology/nodes/0/gpu_id", "0\n");
  put(kfd / "topology/nodes/0/properties", "cpu_cores_count 96\ndrm_render_minor 0\n");
  put(kfd / "topology/nodes/1/gpu_id", "51000\n");
  put(kfd / "topology/nodes/1/properties", "simd_count 1216\ndrm_render_minor 129\n");
  put(kfd / "proc/70/vram_51000", "4096\n");
  put(kfd / "proc/70/vram_60000", "100\n");
  put(kfd / "proc/70/pasid", "32770\n");
  put(kfd / "proc/71/vram_60000", "50\n");
  put(kfd / "proc/99/vram_51000", "8\n");
  fs::create_directories(proc / "self/ns");
  fs::create_symlink("pid:[4026531836]", proc / "self/ns/pid");
  Roots roots{proc.string(), folder.path().string()};
  std::int64_t now = kSecond;
  roots.now_ns = [&] { return now; };
  Heard heard;
  const auto source = opened("amd_gpu", roots);
  source->follow({{"rank 6", {{70, 1, 1}, {72, 1, 70}}}, {"rank 7", {{71, 1, 1}}}, {"rank 8", {{73, 1, 1}}}});
  source->sample(heard);
  CHECK(heard.values["gpu_utilization amd gpu 0"] == 0.05);
  CHECK(heard.values["gpu_utilization amd gpu 1"] == 0.99);
  CHECK(heard.values["gpu_memory_utilization amd gpu 1"] == 0.4);
  CHECK(heard.values["gpu_power amd gpu 1"] == 650);
  CHECK(heard.values["gpu_power_limit amd gpu 1"] == 750);
  CHECK(heard.values["gpu_sm_clock amd gpu 1"] == 2.1e9);
  CHECK(heard.values["gpu_memory_clock amd gpu 1"] == 9e8);
  CHECK(heard.values["gpu_temperature amd gpu 1"] == 61);
  CHECK(heard.values["gpu_memory_temperature amd gpu 1"] == 52);
  CHECK(heard.values["gpu_pcie_replays amd gpu 1"] == 3);
  CHECK(heard.values["gpu_ecc_uncorrected amd gpu 1"] == 1);
  CHECK(heard.values["gpu_memory rank 6"] == 4196);
  CHECK(heard.values["gpu_index rank 6"] == 1);
  CHECK(heard.values["gpu_memory rank 7"] == 50);
  CHECK_FALSE(heard.values.contains("gpu_index rank 7"));  // of no GPU that we know
  CHECK_FALSE(heard.values.contains("gpu_memory rank 8"));
  const fs::path sensors = drm / "card1/device/hwmon/hwmon7";
  put(sensors / "energy1_input", "400\n");  // reset
  source->sample(heard);
  CHECK(heard.values["gpu_energy amd gpu 1"] == 1'000'000);
  put(sensors / "energy1_input", "900\n");
  put(sensors / "power1_input", "");  // as EINVAL while it is reset
  put(drm / "card1/device/gpu_busy_percent", std::string(70'000, '\xff'));
  put(drm / "card1/device/ras/umc_err_count", "ue: -7\n");
  put(sensors / "temp2_input", "999999999999999999999999\n");
  heard.values.clear();
  now += kSecond;
  source->sample(heard);
  CHECK(heard.values["gpu_energy amd gpu 1"] == 1'000'500);
  CHECK_FALSE(heard.values.contains("gpu_power amd gpu 1"));
  CHECK_FALSE(heard.values.contains("gpu_utilization amd gpu 1"));
  CHECK_FALSE(heard.values.contains("gpu_ecc_uncorrected amd gpu 1"));
  CHECK_FALSE(heard.values.contains("gpu_temperature amd gpu 1"));
  fs::remove_all(folder.path() / "class");  // unplugged
  now += kSecond;
  source->sample(heard);
}

TEST_CASE("telemetry: why there is no AMD GPU") {
  const TempFolder folder;
  const Roots roots{folder.path().string(), folder.path().string()};
  CHECK(why_absent("amd_gpu", roots).find("no AMD GPU with the driver amdgpu") != std::string::npos);
  put(folder.path() / "class/drm/card0/device/vendor", "0x1002\n");  // of another driver: no file that we read
  put(folder.path() / "class/drm/card0/device/pp_dpm_sclk", "*");
  CHECK(why_absent("amd_gpu", roots).find("modprobe amdgpu") != std::string::npos);
}

}  // namespace stepscope::collect::telemetry
