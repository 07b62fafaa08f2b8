// Whose process is it that a driver of GPUs tells of?
//
// The driver numbers processes as its caller's PID namespace does (os_find_ns_pid of its open kernel modules), an older
// one as the host does. Where we see the host's own namespace both are the numbers of /proc. In a container a number
// may be that of another process on the host: there it counts only for a process that has a GPU open.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry::gpu {

class Owners {
 public:
  explicit Owners(std::string proc);
  void follow(const std::vector<Group>& groups);
  // The group, counted from 0 as they were given; nullopt: nobody's, or not to be told.
  std::optional<std::size_t> of(unsigned pid) const;

 private:
  struct Candidate {
    std::size_t group;
    pid_t pid;  // its number in /proc
  };
  std::string proc_;
  bool host_numbers_ = false;
  std::multimap<unsigned, Candidate> candidates_;  // by each of its numbers
};

}  // namespace stepscope::collect::telemetry::gpu
