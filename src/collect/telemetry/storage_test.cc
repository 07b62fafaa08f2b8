// Network file systems from trees made here: mounts that come, go and are mounted over.
#include "base/temp_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

namespace fs = std::filesystem;

std::string nfs(const std::string& device, const std::string& folder, int read, int reads, int read_ms) {
  return "device " + device + " mounted on " + folder + " with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2\n" +
         "\tage:\t9\n\tevents:\t1 2 3\n\tbytes:\t" + std::to_string(read) + " 20 5 6 " + std::to_string(read) +
         " 40 1 1\n\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\txprt:\ttcp 0 0\n\tper-op statistics\n" +
         "\t        NULL: 1 1 0 44 24 0 0 0 0\n\t        READ: " + std::to_string(reads) + " 9 0 100 200 3 4 " +
         std::to_string(read_ms) + " 0\n\t       WRITE: 2 2 0 10 10 1 1 1\n\n";
}

const std::string kRoot = "device rootfs mounted on / with fstype ext4\nno device mounted on /x with fstype tmpfs\n";
const std::vector<Group> kRank{{"rank 0", {{7, 1, 1}}}};

}  // namespace

TEST_CASE("telemetry: what goes through NFS mounts, also where they vanish and come back") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc", stats = proc / "7/mountstats";
  const Roots roots{proc.string(), (folder.path() / "sys").string(), {}};
  put(proc / "self/mountstats", kRoot);
  CHECK(why_absent("storage", roots).find("no NFS or Lustre") != std::string::npos);
  put(proc / "self/mountstats", kRoot + nfs("a:/x", "/data", 100, 1, 1));
  const auto source = opened("storage", roots);
  std::string many = kRoot;
  for (int i = 0; i < 3000; i++) many += "device tmpfs mounted on /run/" + std::to_string(i) + " with fstype tmpfs\n";
  put(stats, many + nfs("a:/x", "/my\\040data", 100, 10, 50) + "device b mounted on /b with fstype ext4\n" +
                 "\tbytes:\t1 1 1 1 1 1\n");
  source->follow(kRank);
  Heard heard;
  source->sample(heard);
  put(stats, many + nfs("a:/x", "/my\\040data", 170, 12, 80) + nfs("a:/y", "/my\\040data", 1, 1, 1));
  source->sample(heard);
  CHECK(heard.values["read /my data"] == 70);
  CHECK(heard.values["read_from_server /my data"] == 70);
  CHECK(heard.values["written /my data"] == 0);
  CHECK(heard.values["read_requests /my data"] == 2);
  CHECK(heard.values["read_request_time /my data"] == 30'000'000);
  CHECK(heard.values.size() == 8);
  put(stats, kRoot);
  Heard vanished;
  source->sample(vanished);
  CHECK(vanished.values.empty());
  put(stats, kRoot + nfs("c:/x", "/my\\040data", 1000, 20, 90));  // another server's, which counts for itself
  source->sample(heard);
  put(stats, kRoot + nfs("c:/x", "/my\\040data", 1001, 20, 90));
  source->sample(heard);
  CHECK(heard.values["read /my data"] == 71);
}

TEST_CASE("telemetry: damaged statistics of mounts say nothing") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc", stats = proc / "self/mountstats";
  put(stats, nfs("a:/x", "/data", 1, 1, 1));
  const auto source = opened("storage", {proc.string(), "", {}});
  const std::string whole = nfs("a:/x", "/data", 1, 1, 1);
  Heard heard;
  for (const std::string& text :
       {std::string(), std::string("device"), std::string("device a mounted on"), whole.substr(0, 60),
        std::string("device a mounted on /d with fstype nfs\n\tbytes:\t1 2 3\n\tREAD: x\n\tREAD: 1 2\n"),
        std::string("\tbytes: 1 1 1 1 1 1 1 1\n"), std::string(300'000, 'x'), std::string(300'000, '\0')}) {
    put(stats, text);
    source->sample(heard);
  }
  CHECK(heard.values.empty());
  std::string many;
  for (int i = 0; i < 500; i++) many += nfs("a:/x", "/m" + std::to_string(i), 1, 1, 1);
  put(stats, many);
  opened("storage", {proc.string(), "", {}})->sample(heard);
  CHECK(heard.values.size() == 64 * 8);
}

TEST_CASE("telemetry: Lustre by file system, where its statistics may be read") {
  const TempFolder folder;
  const fs::path proc = folder.path() / "proc", sys = folder.path() / "sys";
  const fs::path clients = sys / "kernel/debug/lustre/llite";
  const Roots roots{proc.string(), sys.string(), {}};
  put(proc / "self/mountstats", "device 10.0.0.1@o2ib:/scratch mounted on /scratch with fstype lustre\n");
  CHECK(why_absent("storage", roots).find("only root") != std::string::npos);
  const auto text = [](int times, int sum) {
    return "snapshot_time             1523008010.817348638 secs.nsecs\nread_bytes                " +
           std::to_string(times) + " samples [bytes] 1 3366225 " + std::to_string(sum) +
           " 9999\nwrite_bytes x\nopen                      4 samples [regs]\nclose 4 samples\nread_bytes";
  };
  put(clients / "scratch-ffff8800/stats", text(3, 1000));
  put(proc / "fs/lustre/llite/my-home-ffff8801/stats", text(5, 50));
  const auto source = opened("storage", roots);
  Heard heard;
  source->sample(heard);
  CHECK(heard.values.size() == 6);
  put(clients / "scratch-ffff8800/stats", text(5, 1400));
  source->sample(heard);
  CHECK(heard.values["read lustre scratch"] == 400);
  CHECK(heard.values["reads lustre scratch"] == 2);
  CHECK(heard.values["read lustre my-home"] == 0);
  put(clients / "scratch-ffff8800/stats", text(1, 10));  // lctl set_param llite.*.stats=clear
  source->sample(heard);
  CHECK(heard.values["read lustre scratch"] == 400);
  put(clients / "scratch-ffff8800/stats", "");
  fs::remove_all(clients / "scratch-ffff8800");
  put(clients / "scratch-ffff9900/stats", text(1, 7000));  // mounted anew
  put(clients / "scratch-ffff9901/stats", text(1, 10));    // and a second time
  for (int i = 0; i < 40; i++) source->sample(heard);
  put(clients / "scratch-ffff9900/stats", text(1, 7001));
  put(clients / "scratch-ffff9901/stats", text(1, 11));
  source->sample(heard);
  CHECK(heard.values["read lustre scratch"] == 401);
  CHECK(heard.values["read lustre scratch (2)"] == 1);
}

}  // namespace stepscope::collect::telemetry
