// What is read of one cgroup, by resource: both versions have their own files for it. What is not there has no samples.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/telemetry/cgroup_places.h"
#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"

namespace stepscope::collect::telemetry {

class CgroupCpuTime {
 public:
  CgroupCpuTime(const Roots& roots, const CgroupPlace& place, const std::string& target);
  void sample(Sink& sink);

 private:
  bool unified_;
  KeptFile file_;
  Growth time_;
};

// The tightest quota, of the cgroup itself or above it, and the stops that came of it.
class CgroupCpuQuota {
 public:
  CgroupCpuQuota(const Roots& roots, const CgroupPlace& place, const std::string& target);
  void sample(Sink& sink);

 private:
  struct Place {
    std::vector<KeptFile> limit;  // cpu.max, or quota and period
    KeptFile stat;
  };
  std::optional<double> cores_of(Place& place) const;
  void find_tightest(Sink& sink);

  bool unified_;
  std::vector<Place> places_;  // the cgroup itself first
  std::size_t tightest_ = 0;
  Seldom limits_;
  Level quota_;
  Growth periods_, throttled_periods_, throttled_time_;
};

class CgroupMemory {
 public:
  CgroupMemory(const Roots& roots, const CgroupPlace& place, const std::string& target);
  void sample(Sink& sink);

 private:
  void sample_others(Sink& sink);

  bool unified_;
  KeptFile used_, events_, kills_;
  std::vector<KeptFile> limits_, soft_limits_;  // with those above
  Seldom others_;
  Level used_series_, limit_, high_;
  Growth high_hits_, limit_hits_, ooms_, oom_kills_;
};

// Reads and writes at block devices.
class CgroupDevices {
 public:
  CgroupDevices(const Roots& roots, const CgroupPlace& place, std::string target);
  void sample(Sink& sink);

 private:
  struct Device {
    Growth read, written;
  };
  Device* device(std::string_view number);

  Roots roots_;
  std::string target_;
  KeptFile file_;
  std::map<std::string, Device, std::less<>> devices_;  // by MAJOR:MINOR
};

}  // namespace stepscope::collect::telemetry
