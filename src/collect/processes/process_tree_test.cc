// Process trees and refusals played on a made-up /proc; the same on this machine where it can be.
#include "collect/processes/process_tree.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "base/temp_fixture.h"
#include "collect/inject/python_child_fixture.h"
#include "collect/processes/obstacles.h"
#include "collect/processes/proc_text.h"
#include "collect/processes/ranks.h"

namespace stepscope::collect {
namespace {

constexpr const char* kTorch =
    "7f0000000000-7f0000001000 r-xp 00001000 08:01 5  /site-packages/torch/lib/libtorch_cpu.so\n";
constexpr const char* kNoTorch = "7f0000000000-7f0000001000 r-xp 00001000 08:01 5  /usr/lib/libc.so.6\n";

struct Played {
  pid_t pid;
  pid_t parent;
  std::vector<std::string> command;
  std::vector<std::string> environment = {"HOME=/"};
  bool torch = true;
  std::string thread_name = "python";
  std::string state = "S";
  std::string status = {};  // more lines
};

class PlayedProc {
 public:
  void add(const Played& p) {
    const std::string name = std::to_string(p.pid);
    std::filesystem::create_directories(folder_.path() / name);
    const auto joined = [](const std::vector<std::string>& words) {
      std::string out;
      for (const std::string& word : words) out += word + '\0';
      return out;
    };
    folder_.put(name + "/stat", name + " (" + p.thread_name + ") " + p.state + " " + std::to_string(p.parent) +
                                    " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 777 0 0\n");
    folder_.put(name + "/comm", p.thread_name + "\n");
    folder_.put(name + "/status", "Name:\t" + p.thread_name + "\nTgid:\t" + name +
                                      "\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t" + name + "\t7\n" + p.status);
    folder_.put(name + "/cmdline", joined(p.command));
    folder_.put(name + "/environ", joined(p.environment));
    folder_.put(name + "/maps", p.torch ? kTorch : kNoTorch);
  }
  TempFolder& folder() { return folder_; }
  std::string root() const { return folder_.path().string(); }
  ProcessTable table() const { return ProcessTable::read(root()); }

 private:
  TempFolder folder_;
};

std::vector<std::string> ranked(int rank, const std::string& port = "29500") {
  return {"RANK=" + std::to_string(rank),
          "LOCAL_RANK=" + std::to_string(rank),
          "WORLD_SIZE=2",
          "MASTER_ADDR=localhost",
          "MASTER_PORT=" + port,
          "TORCHELASTIC_RUN_ID=none"};
}

// A shell script that starts torchrun with two ranks; rank 0 has all the helpers that torch starts.
void play_torchrun(PlayedProc& proc) {
  proc.add({100, 1, {"bash", "run.sh"}, {}, false, "bash"});
  // Its own environment says RANK too, as some cluster scripts do.
  proc.add({101, 100, {"/venv/bin/python3", "/venv/bin/torchrun", "--nproc-per-node", "2", "train.py"}, {"RANK=0"}});
  proc.add({110, 101, {"/venv/bin/python3", "-u", "train.py"}, ranked(0)});
  proc.add({111, 101, {"/venv/bin/python3", "-u", "train.py"}, ranked(1)});
  proc.add({120, 110, {"/venv/bin/python3", "-u", "train.py"}, ranked(0), true, "pt_data_worker"});
  proc.add({121, 110, {"/venv/bin/python3", "-u", "train.py"}, ranked(0)});  // torch before 2.6 does not name it
  proc.add({122, 110, {"python3", "/site-packages/torch/_inductor/compile_worker/__main__.py"}, ranked(0)});
  proc.add(
      {123, 110, {"python3", "-c", "from multiprocessing.resource_tracker import main;main(9)"}, ranked(0), false});
}

std::vector<pid_t> pids(const Result<std::vector<RankProcess>>& ranks) {
  std::vector<pid_t> out;
  if (!ranks) return out;
  for (const RankProcess& rank : *ranks) out.push_back(rank.process.pid);
  return out;
}

}  // namespace

TEST_CASE("ranks: of torchrun, from the launcher, a shell above, a rank and a worker of a rank") {
  PlayedProc proc;
  play_torchrun(proc);
  proc.add({200, 1, {"python3", "other.py"}, ranked(0, "4000")});
  const ProcessTable table = proc.table();
  for (const pid_t named : {100, 101, 110, 111, 120, 121}) {
    CAPTURE(named);
    CHECK(pids(find_ranks(table, named)) == std::vector<pid_t>{110, 111});
  }
  const auto ranks = find_ranks(table, 101).value();
  CHECK(ranks[1].rank == 1);
  CHECK(ranks[1].local_rank == 1);
  CHECK(ranks[1].world_size == 2);
  CHECK(ranks[1].process.pid_inside == 7);
  CHECK(ranks[1].process.user == 1000);
  CHECK(ranks[1].process.start_ticks == 777);
}

TEST_CASE("ranks: one process per task of a cluster belongs together by its rendezvous") {
  PlayedProc proc;
  proc.add({100, 1, {"slurmstepd"}, {}, false});
  for (const int rank : {0, 1}) proc.add({300 + rank, 100, {"python3", "train.py"}, ranked(rank)});
  proc.add({310, 100, {"python3", "train.py"}, ranked(0, "4000")});
  proc.add({320, 300, {"python3", "train.py"}, ranked(0)});  // a forked worker
  CHECK(pids(find_ranks(proc.table(), 301)) == std::vector<pid_t>{300, 301});
}

TEST_CASE("ranks: mp.spawn children, and a single process with its workers") {
  PlayedProc proc;
  const std::vector<std::string> spawned{"python3", "-c",
                                         "from multiprocessing.spawn import spawn_main; spawn_main(5)"};
  proc.add({100, 1, {"python3", "spawn.py"}});
  proc.add({101, 100, {"python3", "-c", "from multiprocessing.resource_tracker import main;main(4)"}, {}, false});
  proc.add({102, 100, spawned});
  proc.add({103, 100, spawned});
  proc.add({104, 102, spawned});
  for (const pid_t named : {100, 102, 103, 104}) {
    CHECK(pids(find_ranks(proc.table(), named)) == std::vector<pid_t>{102, 103});
  }
  proc.add({200, 1, {"python3", "single.py"}});
  proc.add({201, 200, {"python3", "single.py"}});
  proc.add({202, 200, spawned, {"A=b"}, true, "pt_data_worker"});
  CHECK(pids(find_ranks(proc.table(), 201)) == std::vector<pid_t>{200});
  CHECK(pids(find_ranks(proc.table(), 200)) == std::vector<pid_t>{200});
}

TEST_CASE("ranks: a job that another torch process started is a job of its own") {
  PlayedProc proc;
  proc.add({100, 1, {"python3", "-m", "ipykernel_launcher"}});
  proc.add({101, 100, {"python3", "train.py"}});
  proc.add({102, 101, {"python3", "train.py"}});  // a forked worker
  CHECK(pids(find_ranks(proc.table(), 101)) == std::vector<pid_t>{101});
  CHECK(pids(find_ranks(proc.table(), 102)) == std::vector<pid_t>{101});
}

TEST_CASE("ranks: without torch there are none, and the error says so") {
  PlayedProc proc;
  proc.add({100, 1, {"python3", "server.py"}, {"RANK=0"}, false});
  const auto none = find_ranks(proc.table(), 100);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().message.find("have no torch loaded") != std::string::npos);
  CHECK(find_ranks(proc.table(), 999).error().kind == ErrorKind::not_found);
}

TEST_CASE("processes: by number, by name, and a list where a name is not clear") {
  PlayedProc proc;
  play_torchrun(proc);
  proc.add({400, 1, {"/usr/bin/python3", "-X", "dev", "/home/me/serve.py", "--port", "1"}});
  proc.add({401, 1, {"python3", "-m", "my.module", "serve.py"}});
  proc.add({402, 1, {}, {}, false, "odd) S 9 (name"});
  const ProcessTable table = proc.table();
  CHECK(find_process(table, "110").value().pid == 110);
  CHECK(find_process(table, "torchrun").value().pid == 101);
  CHECK(find_process(table, "train.py").value().pid == 110);  // both have one launcher
  CHECK(find_process(table, "train").value().pid == 110);
  CHECK(find_process(table, "serve.py").value().pid == 400);
  CHECK(find_process(table, "me/serve.py").value().pid == 400);
  CHECK(find_process(table, "my.module").value().pid == 401);
  CHECK(table.find(402)->parent == 1);
  CHECK(find_process(table, "99999").error().kind == ErrorKind::not_found);
  CHECK(find_process(table, "e.py").error().kind == ErrorKind::not_found);
  proc.add({403, 1, {"python3", "serve.py"}});
  const auto several = find_process(proc.table(), "serve.py");
  REQUIRE_FALSE(several.has_value());
  CHECK(several.error().message.find("2 processes are named serve.py:\n  400  /usr/bin/python3 -X dev") == 0);
  CHECK(several.error().message.find("\n  403  python3 serve.py") != std::string::npos);
}

TEST_CASE("processes: of this machine, ourselves among them") {
  const ProcessTable table = ProcessTable::read();
  const Process* us = table.find(getpid());
  REQUIRE(us != nullptr);
  CHECK(us->parent == getppid());
  CHECK(us->user == geteuid());
  CHECK_FALSE(us->command.empty());
  CHECK(table.is_below(*us, getppid()));
  CHECK(environment_of("/proc", getpid()).has_value());
  PythonChild child("print(os.getpid())\nsys.stdin.read()");
  CHECK(child.line() == std::to_string(child.pid()));
  CHECK(ProcessTable::read().find(child.pid())->pid_inside == child.pid());
  CHECK(find_ranks(ProcessTable::read(), child.pid()).error().kind == ErrorKind::not_found);
}

TEST_CASE("refusals: what a process's state says beforehand") {
  PlayedProc proc;
  const auto message = [&](const Played& played) {
    proc.add(played);
    const auto result = check_target(proc.root(), played.pid);
    return result ? std::string() : to_text(result.error());
  };
  CHECK(message({500, 1, {"python3", "a.py"}}).empty());
  CHECK(message({501, 1, {"python3"}, {}, true, "python", "Z"}).find("has ended already") != std::string::npos);
  CHECK(message({502, 1, {"python3"}, {}, true, "python", "T"}).find("kill -CONT 502") != std::string::npos);
  CHECK(message({503, 1, {"python3"}, {}, true, "python", "S", "TracerPid:\t500\n"})
            .find("traced by process 500 (python)") != std::string::npos);
  CHECK(message({504, 1, {"python3"}, {}, true, "python", "S", "x86_Thread_features:\tshstk wrss\n"})
            .find("shadow stack") != std::string::npos);
  CHECK(pid_inside_of(proc.root(), 500) == 7);
  CHECK(check_target(proc.root(), 999).error().kind == ErrorKind::not_found);
}

TEST_CASE("refusals: each reason that ptrace may have gets its own sentence and fix") {
  PlayedProc proc;
  proc.add({600, 1, {"python3", "a.py"}});
  std::filesystem::create_directories(proc.folder().path() / "self");
  std::filesystem::create_directories(proc.folder().path() / "sys/kernel/yama");
  const auto text = [&](const std::string& own, const std::string& yama) {
    proc.folder().put("self/status", own);
    proc.folder().put("sys/kernel/yama/ptrace_scope", yama);
    return to_text(why_refused(proc.root(), 600, EPERM));
  };
  const std::string same = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n";
  const std::string root = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n";
  CHECK(text("Uid:\t7\t7\t7\t7\nCapEff:\t0\n", "1").find("belongs to another user (uid 1000)") != std::string::npos);
  CHECK(text(same, "1").find("sudo sysctl kernel.yama.ptrace_scope=0") != std::string::npos);
  CHECK(text(same, "2").find("is 2, only root may") != std::string::npos);
  CHECK(text(root, "3").find("off until a reboot") != std::string::npos);
  CHECK(text(root, "2").find("yama") == std::string::npos);
  CHECK(text(same + "Seccomp:\t2\n", "0").find("--cap-add SYS_PTRACE") != std::string::npos);
  CHECK(text(root + "Seccomp:\t0\n", "0").find("SELinux, AppArmor") != std::string::npos);
  CHECK(why_refused(proc.root(), 600, ESRCH).kind == ErrorKind::not_found);
}

}  // namespace stepscope::collect
