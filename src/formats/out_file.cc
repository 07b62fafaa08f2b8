#include "formats/out_file.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace stepscope::formats {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr int kLevel = 1;

}  // namespace

struct OutFile::State {
  std::string path, temporary;
  int fd = -1;
  int error = 0;
  std::string waiting;
  bool gzip = false;
  isal_zstream stream{};
  std::vector<std::uint8_t> level, output;

  void write_all(const char* data, std::size_t size) {
    while (size > 0 && error == 0) {
      const ssize_t done = ::write(fd, data, size);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) {
        error = errno;
        return;
      }
      data += done;
      size -= static_cast<std::size_t>(done);
    }
  }

  void start_gzip() {
    gzip = true;
    level.resize(ISAL_DEF_LVL1_DEFAULT);
    output.resize(kPiece);
    isal_deflate_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.level = kLevel;
    stream.level_buf = level.data();
    stream.level_buf_size = static_cast<std::uint32_t>(level.size());
  }

  void compress(bool last) {
    stream.next_in = reinterpret_cast<std::uint8_t*>(waiting.data());
    stream.avail_in = static_cast<std::uint32_t>(waiting.size());
    stream.end_of_stream = last ? 1 : 0;
    do {
      stream.next_out = output.data();
      stream.avail_out = static_cast<std::uint32_t>(output.size());
      isal_deflate(&stream);
      write_all(reinterpret_cast<const char*>(output.data()), output.size() - stream.avail_out);
    } while (stream.avail_out == 0 && error == 0);
  }

  void flush(bool last) {
    if (gzip) {
      compress(last);
    } else {
      write_all(waiting.data(), waiting.size());
    }
    waiting.clear();
  }

  ~State() {
    if (fd > 2) close(fd);
    if (!temporary.empty()) std::remove(temporary.c_str());
  }
};

OutFile::OutFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutFile::OutFile(OutFile&&) noexcept = default;
OutFile::~OutFile() = default;

namespace {

Error cannot_write(const std::string& path) {
  return {ErrorKind::unreadable, std::string("cannot be written: ") + std::strerror(errno), path, std::nullopt,
          "Check that the folder is there and may be written to"};
}

}  // namespace

Result<OutFile> OutFile::create(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  if (path == "-") {
    state->fd = 1;
    return OutFile(std::move(state));
  }
  struct stat info {};
  const bool there = stat(path.c_str(), &info) == 0;
  if (there && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {  // a device or a pipe is written to, never replaced
    state->fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (state->fd < 0) return fail(cannot_write(path));
    if (path.ends_with(".gz")) state->start_gzip();
    return OutFile(std::move(state));
  }
  if (char* real = there ? realpath(path.c_str(), nullptr) : nullptr) {  // not the link to it
    state->path = real;
    std::free(real);
  }
  std::string temporary = state->path + ".XXXXXX";
  state->fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (state->fd < 0) return fail(cannot_write(path));
  state->temporary = std::move(temporary);
  if (path.ends_with(".gz")) state->start_gzip();
  return OutFile(std::move(state));
}

void OutFile::add(std::string_view bytes) {
  state_->waiting += bytes;
  if (state_->waiting.size() >= kPiece) state_->flush(false);
}

Result<void> OutFile::finish() {
  State& s = *state_;
  s.flush(true);
  const bool closed_pipe = s.fd == 1 && s.error == EPIPE;  // the reader has seen enough
  if (s.error == 0 && !s.temporary.empty()) {
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(s.fd, 0666 & ~mask) != 0 || std::rename(s.temporary.c_str(), s.path.c_str()) != 0) s.error = errno;
    if (s.error == 0) s.temporary.clear();
  }
  if (s.error == 0 || closed_pipe) return {};
  return fail({ErrorKind::unreadable, std::string("cannot be written: ") + std::strerror(s.error), s.path, std::nullopt,
               "Check the space on the disk"});
}

}  // namespace stepscope::formats
