// The processes of this machine and who started whom, looked at again and again: each look lists /proc and reads only
// those that are new; while the kernel says that none was made, it is listed now and then only. A process keeps the
// parent that it had when it was first seen, so that what a rank left behind when it ended still counts for it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"

namespace stepscope::collect::telemetry {

class ProcessWatch {
 public:
  explicit ProcessWatch(std::string proc_root) : proc_root_(std::move(proc_root)), load_(proc_root_ + "/loadavg") {}

  bool look();  // true: a process has come since the look before, or one was seen to have gone
  bool has(pid_t pid) const { return processes_.contains(pid); }
  // The process first, then all below it that are not below one of `apart`, by PID.
  std::vector<Member> family(pid_t top, const std::map<pid_t, std::string>& apart) const;

 private:
  // The number that the kernel gave last to a process or thread, as its own name space counts; none: it does not say.
  std::optional<std::int64_t> newest_number();
  // Whether the number was given (again) after `before` was the newest.
  bool is_new(pid_t pid, std::optional<std::int64_t> before) const;
  void add(const Member& process);
  void erase(std::map<pid_t, Member>::iterator process);
  void add_family(pid_t top, const std::map<pid_t, std::string>& apart, std::vector<Member>& out) const;

  std::string proc_root_;
  std::map<pid_t, Member> processes_;
  std::multimap<pid_t, pid_t> children_;  // by parent
  KeptFile load_;
  std::optional<std::int64_t> newest_;  // number at the last list
  Seldom list_;
};

}  // namespace stepscope::collect::telemetry
