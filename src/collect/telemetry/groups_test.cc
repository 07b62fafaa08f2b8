// Who belongs to whom, on trees of processes made here.
#include "collect/telemetry/groups.h"

#include "base/temp_fixture.h"
#include "collect/telemetry/telemetry_fixture.h"
#include "run/living.h"
#include "run/ring_fixture.h"

namespace stepscope::collect::telemetry {
namespace {

void start(const std::filesystem::path& proc, int pid, int parent, int ticks = 5) {
  put(proc / std::to_string(pid) / "stat", std::to_string(pid) + " (python3) S " + std::to_string(parent) +
                                               " 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 " + std::to_string(ticks) +
                                               " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
}

std::vector<pid_t> pids(const Group& group) {
  std::vector<pid_t> out;
  for (const Member& member : group.members) out.push_back(member.pid);
  return out;
}

}  // namespace

TEST_CASE("telemetry: a rank has its workers, and not the other ranks") {
  const TempFolder folder;
  const auto proc = folder.path();
  start(proc, 10, 1);   // torchrun
  start(proc, 11, 10);  // its ranks
  start(proc, 12, 10);
  start(proc, 13, 11);  // a worker of the first
  start(proc, 14, 13);  // which started something
  start(proc, 99, 1);   // somebody else's
  Targets ranks;
  GroupFinder find(Roots{proc.string(), "", {}}, {10}, [&](bool) { return ranks; });
  auto groups = find();
  REQUIRE(groups.size() == 1);  // no rank is known yet
  CHECK(groups[0].target == "pid 10");
  CHECK(pids(groups[0]) == std::vector<pid_t>{10, 11, 13, 14, 12});
  ranks = {{11, "rank 0"}, {12, "rank 1"}};
  groups = find();
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].target == "rank 0");
  CHECK(pids(groups[0]) == std::vector<pid_t>{11, 13, 14});
  CHECK(pids(groups[1]) == std::vector<pid_t>{12});
  std::filesystem::remove_all(proc / "13");  // what it started goes on without it
  std::filesystem::remove_all(proc / "12");
  groups = find();
  REQUIRE(groups.size() == 1);
  CHECK(pids(groups[0]) == std::vector<pid_t>{11, 14});
}

TEST_CASE("telemetry: two thousand processes, and PIDs that make a circle") {
  const TempFolder folder;
  for (int pid = 100; pid < 2100; pid++) start(folder.path(), pid, pid == 100 ? 1 : 100 + (pid - 101) / 2);
  start(folder.path(), 50, 51);
  start(folder.path(), 51, 50);
  ProcessWatch watch(folder.path().string());
  CHECK(watch.look());
  CHECK_FALSE(watch.look());
  CHECK(watch.family(100, {}).size() == 2000);
  CHECK(watch.family(50, {}).size() == 2);
  CHECK(watch.family(7, {}).empty());
}

TEST_CASE("telemetry: a number that is used again names another process") {
  const TempFolder folder;
  const auto proc = folder.path();
  const auto newest = [&](int number) {
    put(proc / "loadavg", "0.20 0.18 0.12 1/80 " + std::to_string(number) + "\n");
  };
  const auto ticks_of = [](const std::vector<Member>& members, pid_t pid) {
    for (const Member& one : members) {
      if (one.pid == pid) return static_cast<int>(one.start_ticks);
    }
    return -1;
  };
  newest(900);
  start(proc, 10, 1);
  start(proc, 700, 10);
  start(proc, 800, 10);
  ProcessWatch watch(proc.string());
  CHECK(watch.look());
  start(proc, 800, 10, 77);
  start(proc, 901, 10);
  CHECK_FALSE(watch.look());  // the kernel made none, so that nothing is read
  newest(901);                // 800 was not given again by that
  CHECK(watch.look());
  CHECK(ticks_of(watch.family(10, {}), 800) == 5);
  CHECK(ticks_of(watch.family(10, {}), 901) == 5);
  start(proc, 700, 1, 78);
  newest(750);  // once round
  CHECK(watch.look());
  CHECK(ticks_of(watch.family(10, {}), 700) == -1);  // not a child of 10 any more
  CHECK(ticks_of(watch.family(700, {}), 700) == 78);
  std::filesystem::remove_all(proc / "901");
  int looks = 1;
  while (!watch.look()) looks++;  // an end makes no process
  CHECK(looks == kQuietSamples);
  CHECK(watch.find(901) == nullptr);
  std::filesystem::remove(proc / "loadavg");
  ProcessWatch blind(proc.string());
  CHECK(blind.look());
  start(proc, 800, 10, 79);
  CHECK(blind.look());
  CHECK(ticks_of(blind.family(10, {}), 800) == 79);
}

TEST_CASE("telemetry: ranks are looked for when processes of the job changed, not when others did") {
  const TempFolder folder;
  const auto proc = folder.path();
  start(proc, 10, 1);
  std::vector<bool> asked;
  GroupFinder find(Roots{proc.string(), "", {}}, {10}, [&](bool changed) {
    asked.push_back(changed);
    return Targets();
  });
  find();
  start(proc, 50, 1);
  find();
  start(proc, 11, 10);
  find();
  start(proc, 11, 10, 6);  // another one of that number
  find();
  CHECK(asked == std::vector<bool>{true, false, true, true});
}

TEST_CASE("telemetry: a rank is one process, and its number names no other one later") {
  const TempFolder folder;
  const auto proc = folder.path();
  start(proc, 10, 1);
  start(proc, 30, 10, 6);
  start(proc, 20, 10, 7);  // an evaluation that the training started, with a smaller number
  GroupFinder find(Roots{proc.string(), "", {}}, {10}, [&](bool) { return Targets{{20, "rank 0"}, {30, "rank 0"}}; });
  auto groups = find();
  REQUIRE(groups.size() == 2);
  CHECK((groups[0].target == "pid 20" && pids(groups[0]) == std::vector<pid_t>{20}));
  CHECK((groups[1].target == "rank 0" && pids(groups[1]) == std::vector<pid_t>{30}));
  start(proc, 30, 10, 99);  // somebody else's
  groups = find();
  REQUIRE(groups.size() == 1);
  CHECK((groups[0].name == "rank 0" && pids(groups[0]) == std::vector<pid_t>{20}));
  CHECK(groups[0].target == "pid 20");
  start(proc, 10, 1, 100);
  start(proc, 20, 10, 101);
  CHECK(find().empty());  // nobody is there any more whom we knew
}

TEST_CASE("telemetry: a process that turns out to be a rank keeps its target, and is called so") {
  const TempFolder folder;
  const auto proc = folder.path();
  start(proc, 10, 1);
  start(proc, 11, 10, 6);
  Targets ranks;
  GroupFinder find(Roots{proc.string(), "", {}}, {10}, [&](bool) { return ranks; });
  CHECK(find() == std::vector<Group>{{"pid 10", {{10, 5, 1}, {11, 6, 10}}, ""}});
  ranks = {{10, "rank 0"}};
  CHECK(find() == std::vector<Group>{{"pid 10", {{10, 5, 1}, {11, 6, 10}}, "rank 0"}});
  ranks = {{10, "rank 0"}, {11, "rank 1"}};
  CHECK(find() == std::vector<Group>{{"pid 10", {{10, 5, 1}}, "rank 0"}, {"rank 1", {{11, 6, 10}}, ""}});
  ranks = {{10, "rank 1"}, {11, "rank 2"}};  // each learned its number late
  CHECK(find() == std::vector<Group>{{"pid 10", {{10, 5, 1}}, "rank 1"}, {"rank 1", {{11, 6, 10}}, "rank 2"}});
  start(proc, 12, 10, 7);
  ranks[12] = "rank 1";  // started by the first, and says the same; a target is one process's
  CHECK(find()[2] == Group{"pid 12", {{12, 7, 10, true}}, ""});
}

TEST_CASE("telemetry: the ranks of a run are those with marks on this host") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() / "telemetry");
  const std::string host = run::host_name(), here = run::host_in_names();
  const auto put_ring = [&](const std::string& name, const std::string& on, int pid, int rank) {
    folder.put("telemetry/" + name + ".ring",
               run::RingText(8, "{\"host\": \"" + on + "\", \"pid\": " + std::to_string(pid) + ", \"rank\": " +
                                    std::to_string(rank) + ", \"world_size\": 2, \"rank_source\": \"x\"}")
                   .bytes());
  };
  const FindRanks find = ranks_by_marks(folder.path().string());
  CHECK(FindRanks(find)(true).empty());
  put_ring(here + "_41", host, 41, 0);
  put_ring(here + "_43-2", host, 43, 2);  // by exec
  put_ring("elsewhere_42", "elsewhere", 42, 1);
  put_ring(host + "-17_44", host, 44, 4);  // of a container: 44 is somebody else here
  folder.put("telemetry/c.ring", "damaged");
  FindRanks again = find;
  CHECK(again(false) == Targets{{41, "rank 0"}, {43, "rank 2"}});
  put_ring(here + "_41", host, 41, 3);  // it has learned its number
  again(false);
  CHECK(again(false) == Targets{{41, "rank 3"}, {43, "rank 2"}});
}

}  // namespace stepscope::collect::telemetry
