// What /proc/PID says of one process: its stat and status files taken apart.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepscope::collect {

// PROC_ROOT/PID
std::string proc_folder(const std::string& proc_root, pid_t pid);

// A file of /proc without the line end or the NUL that it ends with; empty where it cannot be read.
std::string proc_text(const std::string& path);

// The words behind "NAME:" in a status file.
std::string status_field(const std::string& status, const std::string& name);

// /proc/PID/stat from the third field (the state) on. Empty: there is no such process that we can see.
class ProcStat {
 public:
  static std::optional<ProcStat> read(const std::string& proc_root, pid_t pid);

  const std::string& thread_name() const { return thread_name_; }  // of the main thread
  char state() const { return fields_[0].front(); }
  bool ended() const { return state() == 'Z' || state() == 'X'; }
  bool stopped() const { return state() == 'T' || state() == 't'; }
  bool ending() const;  // ptrace and the memory map are refused already
  bool kernel_thread() const;
  pid_t parent() const;
  std::uint64_t start_ticks() const;  // since boot; with the PID it names a process for good

 private:
  std::uint64_t number(std::size_t field) const;

  std::string thread_name_;
  std::vector<std::string> fields_;
};

// The text of /proc/PID/status, and of it the number of the process in its own PID namespace (containers), `pid` where
// it says none; and the effective uid, that of root where it says none.
std::string status_of(const std::string& proc_root, pid_t pid);
pid_t pid_inside(const std::string& status, pid_t pid);
std::uint32_t effective_user(const std::string& status);

pid_t pid_inside_of(const std::string& proc_root, pid_t pid);

// Clock ticks from boot to its start. nullopt: no such process, or one that is ending or has ended.
std::optional<std::uint64_t> start_of(const std::string& proc_root, pid_t pid);

}  // namespace stepscope::collect
