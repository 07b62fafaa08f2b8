#include "formats/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace stepscope::formats {
namespace {

constexpr std::uint64_t kLeastLimit = 64 << 20;

Error unreadable(const std::string& path, int code) {
  return {ErrorKind::unreadable, std::string("cannot be read: ") + std::strerror(code), path, std::nullopt,
          "Check the path and its permissions"};
}

Error too_large(const std::string& path, std::uint64_t limit) {
  return {ErrorKind::too_large, "the file holds more than " + std::to_string(limit >> 20) + " MiB of text", path,
          std::nullopt, "Raise the limit with STEPSCOPE_MAX_TEXT_MB if the file is really that large"};
}

}  // namespace

Result<TextFile> TextFile::open(const std::string& path, std::uint64_t max_bytes) {
  TextFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path);
  struct stat info {};
  if (file.fd_ < 0 || fstat(file.fd_, &info) != 0) return fail(unreadable(path, errno));
  if (!S_ISREG(info.st_mode)) {
    return fail({ErrorKind::unreadable, "is not a regular file", path, std::nullopt, "Write it to a file first"});
  }
  file.file_bytes_ = static_cast<std::uint64_t>(info.st_size);
  file.limit_ = max_bytes > 0 ? max_bytes : std::max(kLeastLimit, 100 * file.file_bytes_);
  unsigned char magic[2] = {};
  if (pread(file.fd_, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
    file.gzip_.emplace(file.fd_, file.file_bytes_);
  } else if (file.file_bytes_ > file.limit_) {
    return fail(too_large(path, file.limit_));
  }
  return file;
}

TextFile::TextFile(TextFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      file_bytes_(other.file_bytes_),
      limit_(other.limit_),
      done_(other.done_),
      plain_at_(other.plain_at_),
      gzip_(std::move(other.gzip_)),
      base64_(other.base64_) {}

TextFile::~TextFile() {
  if (fd_ >= 0) close(fd_);
}

Result<std::size_t> TextFile::read_plain(char* out, std::size_t size) {
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, file_bytes_ - std::min(plain_at_, file_bytes_)));
  std::size_t got = 0;
  while (got < size) {
    const ssize_t count = pread(fd_, out + got, size - got, static_cast<off_t>(plain_at_ + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(unreadable(path_, errno));
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  plain_at_ += got;
  return got;
}

Result<std::size_t> TextFile::read_unpacked(char* out, std::size_t size) {
  return gzip_ ? Result<std::size_t>(gzip_->read(out, size)) : read_plain(out, size);
}

// A character is at most one byte, so no more comes than is asked for.
Result<std::size_t> TextFile::read_decoded(char* out, std::size_t size) {
  std::array<char, 64 << 10> text;
  std::size_t got = 0;
  while (got < size && !base64_->ended()) {
    auto read = read_unpacked(text.data(), std::min(text.size(), size - got));
    if (!read) return read;
    if (*read == 0) break;
    got += base64_->decode({text.data(), *read}, out + got);
  }
  return got;
}

Result<void> TextFile::decode_base64_from(std::uint64_t offset) {
  std::array<char, 4096> before;
  while (offset > 0) {
    const auto read =
        read_unpacked(before.data(), static_cast<std::size_t>(std::min<std::uint64_t>(before.size(), offset)));
    if (!read) return fail(read.error());
    if (*read == 0) break;
    offset -= *read;
  }
  base64_.emplace();
  return {};
}

Result<std::size_t> TextFile::read(char* out, std::size_t size) {
  Result<std::size_t> got = base64_ ? read_decoded(out, size) : read_unpacked(out, size);
  if (!got) return got;
  done_ += *got;
  if (done_ > limit_) return fail(too_large(path_, limit_));
  return got;
}

}  // namespace stepscope::formats
