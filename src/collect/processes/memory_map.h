// The memory map of a process as /proc/PID/maps tells it, and its files as they lie in its own mount namespace.
//
// A path in maps is valid inside the process's container only; it is read below /proc/PID/root. A file that was
// replaced since ("(deleted)": an upgrade while the job runs) is still reachable through map_files, where we may.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stepscope::collect {

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t file_offset = 0;
  bool executable = false;
  std::string path;      // as in maps, without " (deleted)"; empty: anonymous
  bool deleted = false;  // the file has no name any more
};

// Empty where the map cannot be read (another user's process, or none).
std::vector<Mapping> read_memory_map(const std::string& proc_root, pid_t pid);

// Where this machine can open the mapped file.
std::string path_of_file(const std::string& proc_root, pid_t pid, const Mapping& mapping);

}  // namespace stepscope::collect
