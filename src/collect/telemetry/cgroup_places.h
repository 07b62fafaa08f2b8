// Where the files of a process's cgroup are: from /proc/PID/cgroup and the mounts that we see, since versions, hybrids,
// name spaces and containers that see a part of the tree all look different under /sys/fs/cgroup.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

// One cgroup, as far as one resource is concerned.
struct CgroupPlace {
  std::string folder;    // where its files are
  std::string mount;     // the highest folder that we see above it, or `folder` itself
  std::string path;      // as the kernel names it
  bool unified = false;  // version 2
  bool operator==(const CgroupPlace&) const = default;
};

class CgroupPlaces {
 public:
  explicit CgroupPlaces(const Roots& roots);

  bool sees_any() const { return !mounts_.empty(); }
  // What /proc/PID/cgroup says of all members, each text once; of ourselves where there are none.
  std::vector<std::string> texts_of(const std::vector<Group>& groups) const;
  // `controller`: of version 1, such as "memory"; where the text does not have it there, the place in version 2.
  // nullopt: the cgroup is not below what is mounted here, or is that of the whole machine.
  std::optional<CgroupPlace> find(std::string_view text, std::string_view controller) const;
  // Of several texts, each place once.
  std::vector<CgroupPlace> find_all(const std::vector<std::string>& texts, std::string_view controller) const;

  static constexpr std::size_t kMostPlaces = 64;  // texts and places

 private:
  struct Mount {
    std::string root, folder, options;  // what of the tree is mounted, where, and its controllers
    bool unified = false;
  };
  std::optional<CgroupPlace> place(std::string_view path, std::string_view controller, bool unified) const;

  std::string proc_;
  std::vector<Mount> mounts_;
};

// The folder and those above it up to the mount.
std::vector<std::string> with_ancestors(const CgroupPlace& place);

// Short names of cgroups as targets: "cgroup /user.slice"; of a long path its end, of long numbers their begin. The
// same for the same path, which resources may have in trees of their own, and never the same for two.
class CgroupNames {
 public:
  const std::string& of(const CgroupPlace& place);

 private:
  std::map<std::string, std::string> by_path_;
};

}  // namespace stepscope::collect::telemetry
