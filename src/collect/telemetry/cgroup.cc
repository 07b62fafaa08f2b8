// The cgroups that the ranks live in: what a container or a job may use, what it uses, and how often it was stopped for
// it. Both versions, also mixed: each resource is read where the process's own list of cgroups says that it is.
#include <array>
#include <map>

#include "collect/telemetry/cgroup_files.h"
#include "collect/telemetry/cgroup_places.h"
#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {
namespace {

// What is sampled of one resource in each cgroup. Those that nobody lives in any more are kept: they may come back, and
// their counters go on then.
template <class Files>
class Watched {
 public:
  void follow(const Roots& roots, CgroupNames& names, const std::vector<CgroupPlace>& places) {
    for (auto& [folder, one] : all_) one.second = false;
    for (const CgroupPlace& place : places) {
      const auto known = all_.find(place.folder);
      if (known != all_.end()) {
        known->second.second = true;
      } else if (all_.size() < kMostKept) {
        all_.try_emplace(place.folder, Files(roots, place, names.of(place)), true);
      }
    }
  }

  void sample(Sink& sink) {
    for (auto& [folder, one] : all_) {
      if (one.second) one.first.sample(sink);
    }
  }

 private:
  static constexpr std::size_t kMostKept = 4 * CgroupPlaces::kMostPlaces;
  std::map<std::string, std::pair<Files, bool>> all_;  // by folder; whether somebody lives there
};

class Cgroup : public Source {
 public:
  Cgroup(const Roots& roots, CgroupPlaces places) : roots_(roots), places_(std::move(places)) { follow({}); }

  void follow(const std::vector<Group>& groups) override {
    const auto texts = places_.texts_of(groups);
    usage_.follow(roots_, names_, places_.find_all(texts, "cpuacct"));
    quota_.follow(roots_, names_, places_.find_all(texts, "cpu"));
    memory_.follow(roots_, names_, places_.find_all(texts, "memory"));
    devices_.follow(roots_, names_, places_.find_all(texts, "blkio"));
  }

  void sample(Sink& sink) override {
    usage_.sample(sink);
    quota_.sample(sink);
    memory_.sample(sink);
    devices_.sample(sink);
  }

 private:
  Roots roots_;
  CgroupPlaces places_;
  CgroupNames names_;
  Watched<CgroupCpuTime> usage_;
  Watched<CgroupCpuQuota> quota_;
  Watched<CgroupMemory> memory_;
  Watched<CgroupDevices> devices_;
};

Result<std::unique_ptr<Source>> open(const Roots& roots) {
  CgroupPlaces places(roots);
  if (!places.sees_any()) {
    return fail({ErrorKind::unsupported, "no cgroup file system is mounted here", roots.proc + "/self/mountinfo",
                 std::nullopt, "Mount it (in a container: start it with /sys/fs/cgroup)"});
  }
  return std::make_unique<Cgroup>(roots, std::move(places));
}

}  // namespace

Collector cgroup_collector() {
  return {"cgroup", "what the ranks' container or job may use and uses: CPU with throttling, memory, devices", 100,
          open};
}

}  // namespace stepscope::collect::telemetry
