// The processes of this machine and who started whom, looked at again and again: each look lists /proc and reads only
// those that are new; while the kernel says that none was made, it is listed now and then only. A process keeps the
// parent that it had when it was first seen; what one left behind when it ended hangs on who had started it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collect/telemetry/collector.h"
#include "collect/telemetry/kept_file.h"
#include "collect/telemetry/kept_series.h"

namespace stepscope::collect::telemetry {

class ProcessWatch {
 public:
  explicit ProcessWatch(std::string proc_root) : proc_root_(std::move(proc_root)), load_(proc_root_ + "/loadavg") {}

  bool look();  // true: a process has come since the look before, or one was seen to have gone
  const Member* find(pid_t pid) const;
  // The process first, then all below it that are not below one of `apart`.
  std::vector<Member> family(pid_t top, const std::map<pid_t, std::string>& apart) const;

 private:
  // The number that the kernel gave last to a process or thread, as its own name space counts; none: it does not say.
  std::optional<std::int64_t> newest_number();
  // Whether the number was given (again) after `before` was the newest.
  bool is_new(pid_t pid, std::optional<std::int64_t> before) const;
  struct Known {
    Member member;
    pid_t above = 0;  // its parent, or who started that if it has ended
  };
  using At = std::map<pid_t, Known>::iterator;
  void add(const Member& process);
  void erase(At process);
  void hang_on(At process, pid_t above);

  std::string proc_root_;
  std::map<pid_t, Known> processes_;
  std::set<std::pair<pid_t, pid_t>> children_;  // of whom, and who
  bool has_looked_ = false;
  KeptFile load_;
  std::optional<std::int64_t> newest_;  // number at the last list
  Seldom list_;
};

}  // namespace stepscope::collect::telemetry
