// Reads /proc; a process may end between two looks, so nothing found is an answer like any other.
#include "collect/kineto_daemon/process.h"

#include <sys/stat.h>

#include <filesystem>

#include "collect/processes/proc_text.h"
#include "collect/processes/process_tree.h"

namespace stepscope::collect::kineto {
namespace fs = std::filesystem;
namespace {

// Empty when it cannot be read.
fs::path space_of(const std::string& process, const char* kind) {
  std::error_code code;
  return fs::read_symlink(fs::path("/proc") / process / "ns" / kind, code);
}

}  // namespace

std::optional<std::string> process_variable(int pid, const std::string& name) {
  const auto all = environment_of("/proc", pid);
  if (!all) return std::nullopt;
  const auto found = all->find(name);
  return found == all->end() ? std::nullopt : std::optional(found->second);
}

bool process_lives(int pid) { return start_of("/proc", pid).has_value(); }

std::optional<unsigned> process_user(int pid) {
  struct stat found {};
  if (stat(("/proc/" + std::to_string(pid)).c_str(), &found) != 0) return std::nullopt;
  return found.st_uid;
}

bool has_own_files(int pid) {
  const fs::path theirs = space_of(std::to_string(pid), "mnt");
  return !theirs.empty() && theirs != space_of("self", "mnt");
}

bool has_own_pids(int pid) {
  const fs::path theirs = space_of(std::to_string(pid), "pid");
  return theirs.empty() || theirs != space_of("self", "pid");
}

}  // namespace stepscope::collect::kineto
