#include "collect/inject/remote_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace stepscope::collect {

Result<RemoteMemory> RemoteMemory::open(const std::string& proc_root, pid_t pid) {
  const std::string path = proc_root + "/" + std::to_string(pid) + "/mem";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) {
    return fail(
        {ErrorKind::unreadable, std::string("its memory cannot be opened: ") + std::strerror(errno), path, {}, ""});
  }
  return RemoteMemory(descriptor);
}

RemoteMemory::~RemoteMemory() {
  if (descriptor_ >= 0) close(descriptor_);
}

RemoteMemory::RemoteMemory(RemoteMemory&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RemoteMemory& RemoteMemory::operator=(RemoteMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

bool RemoteMemory::read(std::uint64_t address, void* into, std::size_t bytes) const {
  return pread(descriptor_, into, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

bool RemoteMemory::write(std::uint64_t address, const void* from, std::size_t bytes) const {
  return pwrite(descriptor_, from, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

// Of memory that is not mapped a read fails; of memory that is no more there is nothing to read.
bool RemoteMemory::alive() const {
  char byte = 0;
  return pread(descriptor_, &byte, 1, 0) != 0;
}

}  // namespace stepscope::collect
