// Reads /proc; a process may end between two looks, so nothing found is an answer like any other.
#include "collect/kineto_daemon/process.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stepscope::collect::kineto {
namespace fs = std::filesystem;
namespace {

std::string read(int pid, const char* what) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + what, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Empty when it cannot be read.
fs::path space_of(const std::string& process, const char* kind) {
  std::error_code code;
  return fs::read_symlink(fs::path("/proc") / process / "ns" / kind, code);
}

}  // namespace

std::optional<std::string> process_variable(int pid, const std::string& name) {
  const std::string all = read(pid, "environ");
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    const std::string_view entry = std::string_view(all).substr(at, end - at);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1));
    }
    at = end + 1;
  }
  return std::nullopt;
}

bool process_lives(int pid) {
  const std::string stat = read(pid, "stat");
  const std::size_t name_end = stat.rfind(')');  // the name may hold spaces and brackets
  return name_end != std::string::npos && name_end + 2 < stat.size() && stat[name_end + 2] != 'Z' &&
         stat[name_end + 2] != 'X';
}

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
