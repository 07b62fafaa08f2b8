// Energy counters and power meters from trees made here.
#include <unistd.h>

#include "base/temp_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

void put_zone(const fs::path& folder, const std::string& name, const std::string& energy) {
  put(folder / "name", name + "\n");
  put(folder / "energy_uj", energy + "\n");
  put(folder / "max_energy_range_uj", "1000000\n");
}

}  // namespace

TEST_CASE("telemetry: energy goes on where its counter wraps") {
  const TempFolder folder;
  const fs::path sys = folder.path() / "sys", zones = sys / "class/powercap";
  put_zone(zones / "intel-rapl:0", "package-0", "999990");
  put_zone(zones / "intel-rapl:0:0", "dram", "10");
  put_zone(zones / "intel-rapl:1", "package-1", "500");
  put_zone(zones / "intel-rapl:1:0", "dram", "20");
  put_zone(zones / "intel-rapl:2", "psys", "5");
  put_zone(zones / "intel-rapl:3", "package-1", "7");            // twice the same name
  put_zone(zones / "intel-rapl-mmio:0", "package-0", "999990");  // the same package again
  fs::create_directories(zones / "intel-rapl:1:1/energy_uj");    // read() of it fails
  put(zones / "intel-rapl:1:1/name", "core\n");
  put(zones / "intel-rapl/enabled", "1\n");
  put(sys / "class/hwmon/hwmon0/name", "power_meter\n");
  put(sys / "class/hwmon/hwmon0/power1_average", "1\n");
  const auto source = opened("power", {"", sys.string(), {}});
  Heard heard;
  source->sample(heard);
  CHECK(heard.values.size() == 5);
  put_zone(zones / "intel-rapl:0", "package-0", "40");
  put_zone(zones / "intel-rapl:0:0", "dram", "15");
  put_zone(zones / "intel-rapl:1:0", "dram", "x");
  put_zone(zones / "intel-rapl:2", "psys", "");
  source->sample(heard);
  CHECK(heard.values["energy package 0"] == 50);
  CHECK(heard.values["energy package 0 dram"] == 5);
  CHECK(heard.values["energy package 1 dram"] == 0);
  CHECK(heard.values["energy psys"] == 0);
}

TEST_CASE("telemetry: power meters stand in where there is no energy counter, other sensors do not") {
  const TempFolder folder;
  const fs::path sensors = folder.path() / "sys/class/hwmon";
  const Roots roots{"", (folder.path() / "sys").string(), {}};
  CHECK(why_absent("power", roots).find("intel_rapl_msr") != std::string::npos);
  put(sensors / "hwmon0/name", "coretemp\n");
  put(sensors / "hwmon0/power1_average", "5\n");
  CHECK(why_absent("power", roots).find("intel_rapl_msr") != std::string::npos);
  put(sensors / "hwmon1/name", "power_meter\n");
  put(sensors / "hwmon1/device/power1_average", "250000000\n");
  put(sensors / "hwmon1/device/power1_oem_info", "CPU Power Socket 0\n");
  put(sensors / "hwmon2/name", "power_meter\n");
  put(sensors / "hwmon2/power1_average", "1500000\n");
  const auto source = opened("power", roots);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values["power CPU Power Socket 0"] == 250);
  CHECK(heard.values["power power meter 1"] == 1.5);
}

TEST_CASE("telemetry: energy counters that only root may read say how to allow it") {
  const TempFolder folder;
  const fs::path zone = folder.path() / "sys/class/powercap/intel-rapl:0";
  put_zone(zone, "package-0", "5");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(zone / "energy_uj", fs::perms::none);
  const uid_t before = geteuid();
  if (before == 0 && seteuid(65534) != 0) {
    MESSAGE("this test needs another user than root, and may not become one");
    return;
  }
  const std::string why = why_absent("power", {"", (folder.path() / "sys").string(), {}});
  if (before == 0) REQUIRE(seteuid(0) == 0);
  CHECK(why.find("only root") != std::string::npos);
  CHECK(why.find("chmod a+r") != std::string::npos);
}

}  // namespace stepscope::collect::telemetry
