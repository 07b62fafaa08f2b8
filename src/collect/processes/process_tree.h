// The processes of this machine from /proc, by PID or by name.
//
// Two things are read late, and only for the few processes that matter: the environment (it may hold secrets; as it was
// at the start of the program, later changes by the program are not in it) and the mapped files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope::collect {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t pid_inside = 0;           // its number in its own PID namespace (containers)
  std::uint32_t user = 0;         // effective uid
  std::uint64_t start_ticks = 0;  // since boot; with `pid` it names a process for good
  bool kernel_thread = false;
  bool ended = false;                // a zombie
  std::string thread_name;           // of the main thread
  std::vector<std::string> command;  // empty: a kernel thread or a zombie
};

class ProcessTable {
 public:
  // What can be seen now; a process that ends meanwhile is left out.
  static ProcessTable read(const std::string& proc_root = "/proc");

  const std::string& proc_root() const { return proc_root_; }
  const std::map<pid_t, Process>& all() const { return processes_; }
  const Process* find(pid_t pid) const;
  std::vector<const Process*> children_of(pid_t pid) const;
  bool is_below(const Process& process, pid_t ancestor) const;

 private:
  std::string proc_root_;
  std::map<pid_t, Process> processes_;
};

// nullopt: not readable (another user's).
std::optional<std::map<std::string, std::string>> environment_of(const std::string& proc_root, pid_t pid);

// What people call it: the script or module of a python ("train.py", "torch.distributed.run"), else the program.
std::string name_of(const Process& process);
// The command line, shortened to `most` bytes.
std::string command_text(const Process& process, std::size_t most = 80);

// `text`: a PID, or a name as name_of() gives it (also with its folder, or without ".py"). Several matches are one job
// when one of them is above the others or all have the same parent: the topmost, or the first child, is the answer.
// Else the error lists them.
Result<Process> find_process(const ProcessTable& table, std::string_view text);

}  // namespace stepscope::collect
