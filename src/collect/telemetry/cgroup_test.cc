// Cgroups of both versions, mixed, in name spaces and in containers, from trees made here.
#include <unistd.h>

#include "base/temp_fixture.h"
#include "collect/telemetry/cgroup_places.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

struct Machine {
  TempFolder folder;
  fs::path proc = folder.path() / "proc", cgroups = folder.path() / "cgroup fs";
  Roots roots{proc.string(), (folder.path() / "sys").string(), {}};
  std::string mounts;

  void mount(const std::string& root, const std::string& at, const std::string& type, const std::string& options) {
    std::string where = (cgroups / at).lexically_normal().string();
    for (std::size_t blank = where.find(' '); blank != where.npos; blank = where.find(' ')) {
      where.replace(blank, 1, "\\040");
    }
    if (where.ends_with('/')) where.pop_back();
    mounts +=
        "31 23 0:28 " + root + " " + where + " rw,relatime shared:9 - " + type + " " + type + " " + options + "\n";
    put(proc / "self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n" + mounts);
  }
  void lives(const std::string& pid, const std::string& text) { put(proc / pid / "cgroup", text); }
};

const std::vector<Group> kRanks{{"rank 0", {{7, 1, 1}, {8, 2, 7}}}, {"rank 1", {{9, 3, 1}}}};

void make_group(const fs::path& folder) { put(folder / "cgroup.type", "domain\n"); }

void put_version_2(const fs::path& group, int usage_us, int throttled_us, int read) {
  make_group(group);
  put(group / "cpu.stat", "usage_usec " + std::to_string(usage_us) +
                              "\nuser_usec 1\nsystem_usec 1\nnr_periods 20\nnr_throttled " +
                              std::to_string(throttled_us / 10) + "\nthrottled_usec " + std::to_string(throttled_us) +
                              "\nnr_bursts 0\nburst_usec 0\n");
  put(group / "cpu.max", "max 100000\n");
  put(group / "memory.current", "4096\n");
  put(group / "memory.max", "max\n");
  put(group / "memory.high", "max\n");
  put(group / "memory.events", "low 0\nhigh 3\nmax 4\noom 1\noom_kill 2\noom_group_kill 0\n");
  put(group / "io.stat", "8:0 rbytes=" + std::to_string(read) + " wbytes=5 rios=1 wios=1 dbytes=0 dios=0\n");
}

}  // namespace

TEST_CASE("telemetry: cgroups of version 2 with the tightest limits above them") {
  Machine machine;
  machine.mount("/", "", "cgroup2", "rw,nsdelegate");
  machine.lives("self", "0::/\n");
  machine.lives("7", "0::/jobs/one\n");
  machine.lives("8", "0::/jobs/one\n");
  machine.lives("9", "0::/jobs/one/deep\n");
  const fs::path one = machine.cgroups / "jobs/one";
  put_version_2(one, 1000, 50, 100);
  put_version_2(one / "deep", 300, 0, 0);
  put(machine.folder.path() / "sys/dev/block/8:0/uevent", "MAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\n");
  put(machine.cgroups / "jobs/cpu.max", "250000 100000\n");
  put(machine.cgroups / "jobs/cpu.stat", "usage_usec 9\nnr_periods 2\nnr_throttled 100\nthrottled_usec 5000\n");
  put(machine.cgroups / "jobs/memory.max", "1000000\n");
  put(one / "memory.high", "900000\n");
  put(one / "deep/cpu.max", "400000 100000\n");
  put(one / "deep/memory.max", "700000\n");
  const auto source = opened("cgroup", machine.roots);
  source->follow(kRanks);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values["cpu_quota cgroup /jobs/one"] == 2.5);
  CHECK(heard.values["cpu_quota cgroup /jobs/one/deep"] == 2.5);
  CHECK(heard.values["memory_used cgroup /jobs/one"] == 4096);
  CHECK(heard.values["memory_limit cgroup /jobs/one"] == 1000000);
  CHECK(heard.values["memory_limit cgroup /jobs/one/deep"] == 700000);
  CHECK(heard.values["memory_high cgroup /jobs/one/deep"] == 900000);
  put_version_2(one, 1500, 90, 180);
  put(machine.cgroups / "jobs/cpu.stat", "usage_usec 9\nnr_periods 4\nnr_throttled 101\nthrottled_usec 5007\n");
  for (int i = 0; i < 9; i++) source->sample(heard);
  CHECK(heard.values["cpu_time cgroup /jobs/one"] == 500'000);
  CHECK(heard.values["cpu_throttled_time cgroup /jobs/one"] == 7000);  // by the quota above it
  CHECK(heard.values["cpu_throttled_periods cgroup /jobs/one/deep"] == 1);
  CHECK(heard.values["cpu_periods cgroup /jobs/one"] == 2);
  CHECK(heard.values["device_read cgroup /jobs/one sda"] == 80);
  put(one / "cpu.max", "100000 100000\n");  // its own is tighter now
  put(one / "memory.events", "low 0\nhigh 4\nmax 4\noom 3\noom_kill 2\n");
  source->sample(heard);
  CHECK(heard.values["cpu_quota cgroup /jobs/one"] == 1);
  CHECK(heard.values["memory_ooms cgroup /jobs/one"] == 2);
  CHECK(heard.values["memory_high_hits cgroup /jobs/one"] == 1);
  CHECK(heard.values["oom_kills cgroup /jobs/one"] == 0);
  put_version_2(one, 1500, 95, 180);
  source->sample(heard);
  CHECK(heard.values["cpu_throttled_time cgroup /jobs/one"] == 7000 + 5000);
  CHECK_FALSE(heard.values.contains("cpu_time cgroup /"));  // ours is of no interest with ranks
}

TEST_CASE("telemetry: cgroups of version 1 beside an empty version 2") {
  Machine machine;
  machine.mount("/", "cpu,cpuacct", "cgroup", "rw,cpu,cpuacct");
  machine.mount("/", "memory", "cgroup", "rw,memory");
  machine.mount("/", "blkio", "cgroup", "rw,blkio");
  machine.mount("/", "unified", "cgroup2", "rw");
  const std::string text = "9:name=systemd:/x\n7:blkio:/\n4:memory:/mem\n2:cpu,cpuacct:/job:a\n0::/\n";
  for (const char* pid : {"self", "7", "8", "9"}) machine.lives(pid, text);
  const fs::path cpu = machine.cgroups / "cpu,cpuacct/job:a", memory = machine.cgroups / "memory/mem";
  put(cpu / "cpuacct.usage", "123456\n");
  put(cpu / "cpu.cfs_quota_us", "-1\n");
  put(cpu / "cpu.cfs_period_us", "100000\n");
  put(cpu / "cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 100\n");
  put(machine.cgroups / "cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put(memory / "memory.usage_in_bytes", "8192\n");
  put(memory / "memory.limit_in_bytes", "9223372036854771712\n");
  put(memory / "memory.failcnt", "3\n");
  put(memory / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  put(machine.cgroups / "blkio/blkio.throttle.io_service_bytes",
      "254:0 Read 1000\n254:0 Write 50\n254:0 Sync 1\n254:0 Total 1050\nTotal 1050\n");
  put(machine.cgroups / "unified/cpu.stat", "usage_usec 1\n");
  put(machine.cgroups / "memory/release_agent", "");
  const auto source = opened("cgroup", machine.roots);
  source->follow(kRanks);
  Heard heard;
  source->sample(heard);
  CHECK_FALSE(heard.values.contains("cpu_quota cgroup /job:a"));
  CHECK_FALSE(heard.values.contains("memory_limit cgroup /mem"));  // as large as numbers get: none
  CHECK(heard.values["memory_used cgroup /mem"] == 8192);
  put(cpu / "cpuacct.usage", "123466\n");
  put(cpu / "cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 150\n");
  put(cpu / "cpu.cfs_quota_us", "50000\n");
  put(memory / "memory.failcnt", "4\n");
  put(memory / "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
  put(machine.cgroups / "blkio/blkio.throttle.io_service_bytes", "254:0 Read 1300\n254:0 Write 60\nTotal 1360\n");
  for (int i = 0; i < 10; i++) source->sample(heard);
  CHECK(heard.values["cpu_time cgroup /job:a"] == 10);
  CHECK(heard.values["cpu_throttled_time cgroup /job:a"] == 50);
  CHECK(heard.values["cpu_quota cgroup /job:a"] == 0.5);
  CHECK(heard.values["memory_limit_hits cgroup /mem"] == 1);
  CHECK(heard.values["oom_kills cgroup /mem"] == 2);
  CHECK(heard.values["device_read cgroup / 254:0"] == 300);
  CHECK(heard.values["device_written cgroup / 254:0"] == 10);
}

TEST_CASE("telemetry: where a cgroup's files are, seen from name spaces and containers") {
  const auto folder_of = [](const std::string& root, const std::string& path) -> std::string {
    Machine machine;
    machine.mount(root, "", "cgroup2", "rw");
    for (const char* group : {"", "x", "x/y"}) make_group(machine.cgroups / group);
    const auto found = CgroupPlaces(machine.roots).find("0::" + path + "\n", "memory");
    return found ? found->folder.substr(machine.cgroups.string().size()) : "none";
  };
  CHECK(folder_of("/", "/").empty());
  CHECK(folder_of("/", "/x/y") == "/x/y");
  CHECK(folder_of("/docker/1", "/docker/1").empty());  // a container without a name space sees only its part
  CHECK(folder_of("/docker/1", "/docker/1/x") == "/x");
  CHECK(folder_of("/docker/1", "/docker/12/x") == "none");
  CHECK(folder_of("/", "/../x") == "none");  // a sibling of our name space
  CHECK(folder_of("/../..", "/../../x/y") == "/x/y");
  CHECK(folder_of("/..", "/x") == "none");  // below an own name that nobody tells
  CHECK(folder_of("/x", "/x/../../y") == "none");
  CHECK(folder_of("/", "/gone") == "none");
  CHECK(folder_of("/", "/x (deleted)") == "none");
}

TEST_CASE("telemetry: cgroups have short names, and each its own") {
  CgroupNames names;
  const std::string id(64, 'a');
  const CgroupPlace pod{"/f/1", "/f", "/kubepods.slice/kubepods-burstable.slice/cri-containerd-" + id + ".scope", true};
  const CgroupPlace twin{"/f/2", "/f", "/kubepods.slice/kubepods-burstable.slice/cri-containerd-" + id + "b.scope",
                         true};
  CHECK(names.of(pod) == "cgroup /…/cri-containerd-aaaaaaaaaaaa.scope");
  CHECK(names.of(twin) == "cgroup /…/cri-containerd-aaaaaaaaaaaa.scope (2)");
  CHECK(names.of(pod) == "cgroup /…/cri-containerd-aaaaaaaaaaaa.scope");
  CHECK(names.of({"/g", "/g", "/", true}) == "cgroup /");
  CHECK(names.of({"/memory", "/memory", "/", false}) == "cgroup /");
  CHECK(names.of({"/h", "/h", "/user.slice/user-1000.slice", true}) == "cgroup /user.slice/user-1000.slice");
  CHECK(with_ancestors({"/m/a/b", "/m", "", true}) == std::vector<std::string>{"/m/a/b", "/m/a", "/m"});
  CHECK(with_ancestors({"/m", "/m", "", true}) == std::vector<std::string>{"/m"});
  CHECK(with_ancestors({"/a/b", "", "", true}) == std::vector<std::string>{"/a/b", "/a", ""});
}

TEST_CASE("telemetry: a cgroup without files, a hostile one and one that vanishes") {
  Machine machine;
  CHECK(why_absent("cgroup", machine.roots).find("no cgroup file system is mounted") != std::string::npos);
  machine.mount("/", "", "cgroup2", "rw");
  machine.lives("self", "0::/\n");
  make_group(machine.cgroups / "bad");
  const auto source = opened("cgroup", machine.roots);
  Heard heard;
  put(machine.cgroups / "cpu.stat", "usage_usec 1\n");
  source->sample(heard);  // the cgroup of the whole machine
  CHECK(heard.values.empty());
  for (const char* pid : {"7", "8"}) machine.lives(pid, "0::/bad\n");
  machine.lives("9", std::string("::\n:\n\n0:") + std::string(20000, ':'));
  put(machine.cgroups / "bad/cpu.stat", "usage_usec -5\nthrottled_usec\nnr_throttled x\n");
  put(machine.cgroups / "bad/cpu.max", "100000 0\n");
  put(machine.cgroups / "bad/memory.max", "-1\n");
  put(machine.cgroups / "bad/io.stat", "8:0 8:16 rbytes=5 wbytes= x=1 :: (unknown) rbytes=7 rbytes=\n9:: rbytes=4");
  put(machine.cgroups / "bad/memory.events", std::string(40000, '\xff'));
  source->follow(kRanks);
  source->sample(heard);
  CHECK(heard.values.size() == 2);
  CHECK(heard.values.contains("device_read cgroup /bad 8:16"));
  CHECK(heard.values.contains("device_read cgroup /bad 9::"));
  put(machine.cgroups / "bad/memory.current", "1\n");
  source->follow({});
  fs::remove_all(machine.cgroups / "bad");
  source->follow(kRanks);
  source->sample(heard);
  std::string many;
  for (int i = 0; i < 3000; i++) many += std::to_string(i) + ":0 rbytes=1 wbytes=1\n";
  make_group(machine.cgroups);  // ours, in a name space
  put(machine.cgroups / "io.stat", many);
  const auto own = opened("cgroup", machine.roots);
  Heard devices;
  own->sample(devices);
  CHECK(devices.values.size() == 1 + 64 * 2);  // with its CPU time
}

TEST_CASE("telemetry: pressure of the machine and of cgroups") {
  Machine machine;
  CHECK(why_absent("pressure", machine.roots).find("CONFIG_PSI") != std::string::npos);
  machine.mount("/", "", "cgroup2", "rw");
  machine.lives("7", "0::/job\n");
  const auto text = [](int some, int full) {
    return "some avg10=0.02 avg60=0.12 avg300=0.42 total=" + std::to_string(some) +
           "\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=" + std::to_string(full) + "\n";
  };
  put(machine.proc / "pressure/cpu", "some avg10=0.02 avg60=0.12 avg300=0.42 total=100\n");  // before 5.13
  put(machine.proc / "pressure/memory", text(5, 1));
  put(machine.proc / "pressure/io", "some avg10=0.00 total=\nfull avg10=x\n");
  make_group(machine.cgroups / "job");
  put(machine.cgroups / "job/cpu.pressure", text(10, 5));
  const auto source = opened("pressure", machine.roots);
  source->follow({{"rank 0", {{7, 1, 1}}}});
  Heard heard;
  source->sample(heard);
  put(machine.proc / "pressure/cpu", text(150, 0));
  put(machine.proc / "pressure/memory", text(7, 4));
  put(machine.cgroups / "job/cpu.pressure", text(30, 6));
  source->sample(heard);
  CHECK(heard.values["cpu_pressure_some host"] == 50'000);
  CHECK(heard.values["memory_pressure_some host"] == 2000);
  CHECK(heard.values["memory_pressure_full host"] == 3000);
  CHECK(heard.values["cpu_pressure_some cgroup /job"] == 20'000);
  CHECK(heard.values["cpu_pressure_full cgroup /job"] == 1000);
  CHECK(heard.values.size() == 5);  // no total, and none of all work for a machine's cores
  source->follow({});
  put(machine.cgroups / "job/cpu.pressure", text(90, 6));
  source->sample(heard);
  CHECK(heard.values["cpu_pressure_some cgroup /job"] == 20'000);  // nobody lives there
}

}  // namespace stepscope::collect::telemetry
