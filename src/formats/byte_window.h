// ByteWindow: the bytes of a file from front to back, as many of them in one piece as the caller asks for.
//
// Memory is the window, or the longest piece that was asked for and is really there: a length that the file only claims
// makes the window grow no further than the file goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/text_file.h"

namespace stepscope::formats {

class ByteWindow {
 public:
  explicit ByteWindow(TextFile& file, std::size_t window = 1 << 20)
      : file_(file), buffer_(std::max<std::size_t>(window, 16)) {}

  // Do `size` more bytes follow? False where the file ends before, or cannot be read (see error()).
  bool has(std::size_t size) { return have_ - at_ >= size || fetch(size); }
  // The next bytes, which has() must have promised; valid until the next call of it.
  const char* next(std::size_t size) {
    const char* piece = buffer_.data() + at_;
    at_ += size;
    return piece;
  }
  template <class T>
  T number() {  // as it lies in memory
    T value;
    std::memcpy(&value, next(sizeof(T)), sizeof(T));
    return value;
  }

  std::uint64_t offset() const { return base_ + at_; }  // of what comes next
  const std::optional<Error>& error() const { return error_; }

 private:
  bool fetch(std::size_t size) {
    std::memmove(buffer_.data(), buffer_.data() + at_, have_ - at_);
    base_ += at_;
    have_ -= at_;
    at_ = 0;
    while (have_ < size && !error_ && !ended_) {
      if (have_ == buffer_.size()) buffer_.resize(std::min(size, 2 * have_));
      const std::size_t room = buffer_.size() - have_;
      const auto got = file_.read(buffer_.data() + have_, room);
      if (!got) error_ = got.error();
      ended_ = got && *got < room;
      have_ += got.value_or(0);
    }
    return have_ >= size;
  }

  TextFile& file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, have_ = 0;
  std::uint64_t base_ = 0;  // offset of buffer_[0]
  bool ended_ = false;
  std::optional<Error> error_;
};

}  // namespace stepscope::formats
