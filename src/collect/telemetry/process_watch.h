// The processes of this machine and who started whom, looked at again and again: each look lists /proc and reads only
// those that are new. A process keeps the parent that it had when it was first seen, so that what a rank left behind
// when it ended still counts for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

class ProcessWatch {
 public:
  explicit ProcessWatch(std::string proc_root) : proc_root_(std::move(proc_root)) {}

  bool look();  // true: a process has come or gone since the look before
  bool has(pid_t pid) const { return processes_.contains(pid); }
  // The process first, then all below it that are not below one of `apart`, by PID.
  std::vector<Member> family(pid_t top, const std::map<pid_t, std::string>& apart) const;

 private:
  void add_family(pid_t top, const std::map<pid_t, std::string>& apart, std::vector<Member>& out) const;

  std::string proc_root_;
  std::map<pid_t, Member> processes_;
  std::multimap<pid_t, pid_t> children_;  // by parent
};

}  // namespace stepscope::collect::telemetry
