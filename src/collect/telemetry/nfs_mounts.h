// What goes through the NFS mounts that a process sees, from /proc/PID/mountstats. The numbers are of the mount,
// whoever uses it on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"

namespace stepscope::collect::telemetry {

class NfsMounts {
 public:
  explicit NfsMounts(const std::string& mountstats) : file_(mountstats) {}

  // Of another process, whose mounts may be others.
  void open(const std::string& mountstats);
  void sample(Sink& sink);
  // Whether a mount of this type is there: "nfs" (of any version), "lustre".
  bool has(std::string_view type);

 private:
  struct Mount {
    std::string device;
    std::vector<Growth> series;
    std::uint64_t round = 0;  // in which it was read last
  };
  Mount* mount(std::string_view device, std::string_view folder);
  static void add_bytes(Mount& mount, std::string_view numbers, Sink& sink);
  static void add_requests(Mount& mount, std::size_t first, std::string_view numbers, Sink& sink);

  static constexpr std::size_t kMostMounts = 64;
  KeptFile file_;
  std::map<std::string, Mount, std::less<>> mounts_;  // by folder, as the kernel writes it
  std::uint64_t round_ = 0;
};

}  // namespace stepscope::collect::telemetry
