// Memory bandwidth by groups of the file system resctrl (Documentation/filesystems/resctrl.rst of Linux): bytes between
// each L3 cache and memory, all and those of its own NUMA node. The counters of the hardware are narrow; the kernel
// widens them as long as it is asked about once a second.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/rising.h"

namespace stepscope::collect::telemetry::bandwidth {

struct Traffic {
  std::int64_t all = 0;
  std::optional<std::int64_t> remote;  // of other NUMA nodes
};

// An L3 cache as one group sees it.
class L3Traffic {
 public:
  L3Traffic(std::string domain, const std::string& folder)
      : domain_(std::move(domain)), all_(folder + "/mbm_total_bytes"), local_(folder + "/mbm_local_bytes") {}

  const std::string& domain() const { return domain_; }  // "00"
  // nullopt: "Unavailable", "Error", "Unassigned", or the group is gone.
  std::optional<Traffic> read();
  bool is_gone() const { return all_.error() != 0; }

 private:
  std::string domain_;
  KeptFile all_, local_;
  Rising rising_all_, rising_remote_;
  std::int64_t last_all_ = 0, most_remote_ = 0;
};

// mon_data/mon_L3_NN of a group that have a counter of all bytes.
std::vector<L3Traffic> traffic_of(const std::string& group);

// Names of the folders in it that are groups of their own.
std::vector<std::string> folders_in(const std::string& folder);

}  // namespace stepscope::collect::telemetry::bandwidth
