// TextFile: the text of a file from front to back, plain or gzip, for readers that keep only a part of it in memory.
// Text that lies in another one as base64 can be read as if it were the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "formats/base64.h"
#include "formats/gzip_stream.h"

namespace stepscope::formats {

class TextFile {
 public:
  // `max_bytes` limits the text, not the file; 0: 100 times the file's size, 64 MiB at least.
  static Result<TextFile> open(const std::string& path, std::uint64_t max_bytes);
  ~TextFile();
  TextFile(TextFile&& other) noexcept;
  TextFile(const TextFile&) = delete;

  // From now on the text is what the base64 stands for that begins at byte `offset` of what was the text so far;
  // nothing was read yet. A file that ends before has no text.
  Result<void> decode_base64_from(std::uint64_t offset);

  // Fills up to `size` bytes; fewer only at the end.
  Result<std::size_t> read(char* out, std::size_t size);

  bool compressed() const { return gzip_.has_value(); }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t text_bytes() const { return done_; }  // read so far
  // Of a compressed file, as far as it was read.
  GzipStream::Damage damage() const { return gzip_ ? gzip_->damage() : GzipStream::Damage{}; }

 private:
  TextFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Result<std::size_t> read_plain(char* out, std::size_t size);
  Result<std::size_t> read_unpacked(char* out, std::size_t size);
  Result<std::size_t> read_decoded(char* out, std::size_t size);

  int fd_;
  std::string path_;
  std::uint64_t file_bytes_ = 0, limit_ = 0, done_ = 0;
  std::uint64_t plain_at_ = 0;  // next byte of the file, where it is not compressed
  std::optional<GzipStream> gzip_;
  std::optional<Base64> base64_;
};

}  // namespace stepscope::formats
