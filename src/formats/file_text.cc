#include "formats/file_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stepscope::formats {
namespace {

constexpr std::uint64_t kLeastLimit = 64 << 20;
constexpr std::size_t kPiece = 1 << 20;

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Error unreadable(const std::string& path, int code) {
  return {ErrorKind::unreadable, std::string("cannot be read: ") + std::strerror(code), path, std::nullopt,
          "Check the path and its permissions"};
}

Error too_large(const std::string& path, std::uint64_t limit) {
  return {ErrorKind::too_large, "the file holds more than " + std::to_string(limit >> 20) + " MiB of text", path,
          std::nullopt, "Raise the limit with STEPSCOPE_MAX_TEXT_MB if the file is really that large"};
}

Result<void> read_plain(int fd, const std::string& path, FileText& file) {
  file.text.resize(file.file_bytes);
  std::size_t done = 0;
  while (done < file.text.size()) {
    const ssize_t got = pread(fd, file.text.data() + done, file.text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(unreadable(path, errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  file.text.resize(done);
  return {};
}

}  // namespace

Result<FileText> read_text(const std::string& path, std::uint64_t max_bytes) {
  const Descriptor descriptor{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info {};
  if (descriptor.fd < 0 || fstat(descriptor.fd, &info) != 0) return fail(unreadable(path, errno));
  if (!S_ISREG(info.st_mode)) {
    return fail({ErrorKind::unreadable, "is not a regular file", path, std::nullopt, "Write it to a file first"});
  }
  FileText file;
  file.file_bytes = static_cast<std::uint64_t>(info.st_size);
  const std::uint64_t limit = max_bytes > 0 ? max_bytes : std::max(kLeastLimit, 100 * file.file_bytes);
  unsigned char magic[2] = {};
  file.compressed = pread(descriptor.fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (!file.compressed) {
    if (file.file_bytes > limit) return fail(too_large(path, limit));
    if (const auto done = read_plain(descriptor.fd, path, file); !done) return fail(done.error());
    return file;
  }
  GzipStream stream(descriptor.fd, file.file_bytes);
  for (std::size_t size = 0;;) {
    file.text.resize(size + kPiece);
    const std::size_t got = stream.read(file.text.data() + size, kPiece);
    size += got;
    if (size > limit) return fail(too_large(path, limit));
    if (got < kPiece) {
      file.text.resize(size);
      break;
    }
  }
  file.damage = stream.damage();
  return file;
}

}  // namespace stepscope::formats
