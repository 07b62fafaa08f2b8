// The machine's own numbers from trees of /proc of several kernels.
#include <unistd.h>

#include "base/temp_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

const double kTick = 1e9 / static_cast<double>(sysconf(_SC_CLK_TCK));

void put_machine(const fs::path& proc, const std::string& cpu, const std::string& interrupts) {
  put(proc / "stat",
      "cpu  " + cpu + "\ncpu0 1 1 1 1 1\ncpu3 1 1 1 1 1\nintr " + interrupts + "\nctxt 500\nbtime 1\nprocesses 3\n");
  put(proc / "meminfo",
      "MemTotal:       100 kB\nMemFree:          2 kB\nMemAvailable:    60 kB\nBuffers:   1 kB\nCached:  7 kB\n"
      "SwapCached:      9 kB\nDirty:           3 kB\n");
  put(proc / "vmstat", "nr_free_pages 7\npswpin 10\npswpout 20\npgfault 9\npgmajfault 30\n");
}

}  // namespace

TEST_CASE("telemetry: the machine's CPU time, memory and swapping") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc";
  std::string interrupts = "9";
  for (int i = 0; i < 60000; i++) interrupts += " 0";  // longer than a reading
  put_machine(proc, "100 10 50 1000 20 3 4 5 99 99", interrupts);
  const auto source = opened("host", {proc.string(), "", {}});
  Heard heard;
  source->sample(heard);
  CHECK(heard.values["online_cores host"] == 2);
  CHECK(heard.values["memory_available host"] == 60 * 1024);
  CHECK(heard.values["memory_cached host"] == 7 * 1024);
  CHECK(heard.values["memory_dirty host"] == 3 * 1024);
  CHECK(heard.values["cpu_user host"] == 0);
  put_machine(proc, "110 20 53 999 30 4 5 7 99 99", interrupts);
  put(proc / "vmstat", "pswpin 11\npswpout 25\npgmajfault 33\n");
  source->sample(heard);
  CHECK(heard.values["cpu_user host"] == 20 * kTick);  // nice is a program's time too
  CHECK(heard.values["cpu_system host"] == 5 * kTick);
  CHECK(heard.values["cpu_idle host"] == 0);  // fell by a tick
  CHECK(heard.values["cpu_iowait host"] == 10 * kTick);
  CHECK(heard.values["cpu_steal host"] == 2 * kTick);
  CHECK(heard.values["context_switches host"] == 0);
  CHECK(heard.values["swapped_in host"] == 0);  // read at every second time
  source->sample(heard);
  CHECK(heard.values["swapped_in host"] == static_cast<double>(sysconf(_SC_PAGESIZE)));
  CHECK(heard.values["swapped_out host"] == 5.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  CHECK(heard.values["major_faults host"] == 3);
}

TEST_CASE("telemetry: what an old or damaged /proc does not say of the machine has no samples") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc";
  put(proc / "stat", "cpu  1 2 3 4 5\n");  // before there was steal
  put(proc / "meminfo", "MemTotal: 100 kB\nCached: x kB\n");
  const auto source = opened("host", {proc.string(), "", {}});
  Heard heard;
  source->sample(heard);
  CHECK(heard.values.size() == 4);
  CHECK(heard.values.contains("cpu_iowait host"));
  CHECK_FALSE(heard.values.contains("memory_cached host"));
  Heard nothing;
  for (const std::string& text : {std::string(), std::string("cpu"), std::string("cpu \n\n"), std::string("cpu  1 2\n"),
                                  std::string("cpu  9223372036854775807 9223372036854775807 1 1 1 1 1 1\n"),
                                  std::string("cpu  99999999999999999999 1 1 1 1 1 1 1\n"), std::string(70000, '\0')}) {
    put(proc / "stat", text);
    source->sample(nothing);
  }
  CHECK(nothing.values.empty());
}

TEST_CASE("telemetry: without /proc the machine's numbers are absent, with the reason") {
  const TempFolder folder;
  CHECK(why_absent("host", {folder.path().string(), "", {}}).find("Mount proc") != std::string::npos);
}

}  // namespace stepscope::collect::telemetry
