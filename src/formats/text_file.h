// TextFile: the text of a file from front to back, plain or gzip, for readers that keep only a part of it in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "formats/gzip_stream.h"

namespace stepscope::formats {

class TextFile {
 public:
  // `max_bytes` limits the text, not the file; 0: 100 times the file's size, 64 MiB at least.
  static Result<TextFile> open(const std::string& path, std::uint64_t max_bytes);
  ~TextFile();
  TextFile(TextFile&& other) noexcept;
  TextFile(const TextFile&) = delete;

  // Fills up to `size` bytes; fewer only at the end.
  Result<std::size_t> read(char* out, std::size_t size);

  bool compressed() const { return gzip_.has_value(); }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t text_bytes() const { return done_; }  // read so far
  // Of a compressed file, as far as it was read.
  GzipStream::Damage damage() const { return gzip_ ? gzip_->damage() : GzipStream::Damage{}; }

 private:
  TextFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Result<std::size_t> read_plain(char* out, std::size_t size) const;

  int fd_;
  std::string path_;
  std::uint64_t file_bytes_ = 0, limit_ = 0, done_ = 0;
  std::optional<GzipStream> gzip_;
};

}  // namespace stepscope::formats
