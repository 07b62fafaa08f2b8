// A file of /proc or /sys that is read again and again: it stays open, and each reading is one pread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

namespace stepscope::collect::telemetry {

class KeptFile {
 public:
  explicit KeptFile(std::string path) : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) error_ = errno;
  }
  KeptFile(KeptFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), error_(other.error_) {}
  KeptFile& operator=(KeptFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    std::swap(error_, other.error_);
    return *this;
  }
  ~KeptFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  // The text, up to 16 KiB; empty where it cannot be read any more (error() says why). Valid until the next reading of
  // any file on this thread.
  std::string_view read() {
    static thread_local std::array<char, 16 << 10> buffer;
    if (fd_ < 0) return {};
    const ssize_t got = ::pread(fd_, buffer.data(), buffer.size(), 0);
    error_ = got < 0 ? errno : 0;
    return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

  // A piece of a long file; 0: its end, or it cannot be read any more. Pieces in order are one state of the kernel's.
  std::size_t read_at(std::size_t at, char* into, std::size_t most) {
    if (fd_ < 0) return 0;
    const ssize_t got = ::pread(fd_, into, most, static_cast<off_t>(at));
    error_ = got < 0 ? errno : 0;
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

  bool is_open() const { return fd_ >= 0; }
  int error() const { return error_; }  // errno of what went wrong last; 0: nothing
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  int error_ = 0;
};

// Of a file that is read once; empty: it cannot be read.
inline std::string first_line_of(const std::string& path) {
  KeptFile file(path);
  const std::string_view text = file.read();
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace stepscope::collect::telemetry
