// Memory bandwidth of each rank, by a monitoring group of resctrl of its own. On request, for it changes the machine
// while it runs: groups are made, of which the hardware has a few hundred, and processes are written into them. The
// groups end with the sampler; those that a killed one left go when the next begins.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <set>

#include "collect/telemetry/bandwidth/resctrl.h"
#include "collect/telemetry/collector.h"
#include "collect/telemetry/numbers.h"

namespace stepscope::collect::telemetry {
namespace {

using bandwidth::folders_in, bandwidth::L3Traffic, bandwidth::Traffic, bandwidth::traffic_of;

constexpr std::string_view kPrefix = "stepscope-";  // stepscope-<PID of the sampler>-<number>

// One thread a write, as the kernel takes them. The file is there; only where tests stand in for the kernel it is made.
// False: it is not in the group, though it lives.
bool put_thread(const std::string& group, const std::string& thread) {
  const int file = ::open((group + "/tasks").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0644);
  if (file < 0) return false;
  const std::string line = thread + "\n";
  const bool is_done = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) || errno == ESRCH;
  close(file);
  return is_done;
}

class Watch {
 public:
  Watch(std::string target, std::string folder)
      : target_(std::move(target)), folder_(std::move(folder)), is_made_(mkdir(folder_.c_str(), 0755) == 0) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    if (is_made_) rmdir(folder_.c_str());  // the kernel's files go with it
  }

  const std::string& target() const { return target_; }

  // What they start later is in the group by itself. Threads that began while we wrote are found the second time.
  void take(const std::string& proc, const std::vector<Member>& members) {
    if (!is_made_) return;
    for (const Member& member : members) {
      if (!taken_.insert({member.pid, member.start_ticks}).second) continue;
      std::set<std::string> written;
      for (int pass = 0; pass < 2; pass++) {
        for (const std::string& thread : folders_in(proc + "/" + std::to_string(member.pid) + "/task")) {
          if (written.insert(thread).second) is_whole_ &= put_thread(folder_, thread);
        }
      }
    }
  }

  void sample(Sink& sink) {
    if (!is_made_ || !is_whole_) return;
    if (files_.empty()) files_ = traffic_of(folder_);
    Traffic sum{0, 0};
    for (L3Traffic& file : files_) {
      const auto traffic = file.read();
      if (!traffic) return;  // the next sample has it
      sum.all += traffic->all;
      if (sum.remote && traffic->remote) {
        *sum.remote += *traffic->remote;
      } else {
        sum.remote.reset();
      }
    }
    if (files_.empty()) return;
    sink.add(sink.series({"rank_bandwidth", "memory_traffic", target_, "bytes", run::SeriesKind::counter,
                          "Bytes between caches and memory for the rank and its children"}),
             sum.all);
    if (!sum.remote) return;
    sink.add(sink.series({"rank_bandwidth", "memory_traffic_remote", target_, "bytes", run::SeriesKind::counter,
                          "Bytes of these that went to memory of other NUMA nodes"}),
             *sum.remote);
  }

 private:
  std::string target_, folder_;
  bool is_made_, is_whole_ = true;  // not whole: what a part of it moves says nothing of the rank
  std::set<std::pair<pid_t, std::uint64_t>> taken_;
  std::vector<L3Traffic> files_;
};

class RankBandwidth : public Source {
 public:
  explicit RankBandwidth(const Roots& roots) : proc_(roots.proc), groups_(roots.sys + "/fs/resctrl/mon_groups") {}

  void follow(const std::vector<Group>& groups) override {
    std::vector<std::unique_ptr<Watch>> still;
    for (const Group& group : groups) {
      const auto known = std::find_if(watched_.begin(), watched_.end(),
                                      [&](const auto& one) { return one && one->target() == group.target; });
      if (known != watched_.end()) {
        still.push_back(std::move(*known));
      } else {
        std::string folder = groups_;
        folder.append("/").append(kPrefix).append(std::to_string(getpid()));
        still.push_back(std::make_unique<Watch>(group.target, folder.append("-").append(std::to_string(made_++))));
      }
      still.back()->take(proc_, group.members);
    }
    watched_ = std::move(still);
  }

  void sample(Sink& sink) override {
    for (const auto& one : watched_) one->sample(sink);
  }

 private:
  std::string proc_, groups_;
  std::vector<std::unique_ptr<Watch>> watched_;
  int made_ = 0;
};

void remove_leftovers(const std::string& groups) {
  for (const std::string& name : folders_in(groups)) {
    if (name.rfind(kPrefix, 0) != 0) continue;
    const auto pid = first_number(name.substr(kPrefix.size()));
    if (pid && *pid > 0 && kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH) {
      rmdir((groups + "/" + name).c_str());
    }
  }
}

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  const std::string root = roots.sys + "/fs/resctrl", groups = root + "/mon_groups";
  const auto unsupported = [&](std::string message, std::string hint) {
    return fail({ErrorKind::unsupported, std::move(message), root, std::nullopt, std::move(hint)});
  };
  if (traffic_of(root).empty()) {
    return unsupported("resctrl is not mounted here, or these CPUs do not count memory bandwidth",
                       "Mount it as root where the CPUs have it: mount -t resctrl resctrl /sys/fs/resctrl");
  }
  remove_leftovers(groups);
  const std::string probe = groups + "/" + std::string(kPrefix) + std::to_string(getpid()) + "-probe";
  if (mkdir(probe.c_str(), 0755) != 0) {
    const int reason = errno;
    if (reason == ENOSPC) {
      return unsupported("all monitoring groups of resctrl are in use", "Remove some of /sys/fs/resctrl/mon_groups");
    }
    return unsupported(std::string("no monitoring group of resctrl can be made: ") + std::strerror(reason),
                       "Run as root, outside of a container");
  }
  rmdir(probe.c_str());
  return std::make_unique<RankBandwidth>(roots);
}

}  // namespace

Collector rank_bandwidth_collector() {
  return {"rank_bandwidth", "bytes between CPUs and memory for each rank, by groups of resctrl made for it", 200, open,
          true};
}

}  // namespace stepscope::collect::telemetry
