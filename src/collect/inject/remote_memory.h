// Reads and writes another process's memory by /proc/PID/mem.
//
// Rights are asked for once, at opening: the open file goes on working when nobody is attached any more, and it stays
// with the memory that it was opened on, so a process that runs another program (exec) or ends is told apart.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stepscope::collect {

class RemoteMemory {
 public:
  static Result<RemoteMemory> open(const std::string& proc_root, pid_t pid);
  ~RemoteMemory();
  RemoteMemory(RemoteMemory&& other) noexcept;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;
  RemoteMemory& operator=(RemoteMemory&& other) noexcept;

  // False where not all of it is mapped (or, for write, writable).
  bool read(std::uint64_t address, void* into, std::size_t bytes) const;
  bool write(std::uint64_t address, const void* from, std::size_t bytes) const;
  // False once the process ended or runs another program.
  bool alive() const;

 private:
  explicit RemoteMemory(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace stepscope::collect
