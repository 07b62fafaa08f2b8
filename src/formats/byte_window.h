// ByteWindow: the bytes of a file from front to back, as many of them in one piece as the caller asks for.
//
// Memory is the window, or the longest piece that was asked for and is really there: a length that the file only claims
// makes the window grow no further than the file goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "formats/text_file.h"

namespace stepscope::formats {

class ByteWindow {
 public:
  static constexpr std::size_t kWindow = 256 << 10;

  explicit ByteWindow(TextFile& file, std::size_t window = kWindow)
      : file_(file), buffer_(std::max<std::size_t>(window, 16)), next_(buffer_.data()), end_(next_) {}
  ByteWindow(const ByteWindow&) = delete;

  // Do `size` more bytes follow? False where the file ends before, or cannot be read (see error()).
  bool has(std::size_t size) { return left() >= size || fetch(size); }
  // The next bytes, which has() must have promised; valid until the next call of it.
  const char* next(std::size_t size) { return std::exchange(next_, next_ + size); }
  template <class T>
  T number() {  // as it lies in memory
    T value;
    std::memcpy(&value, next(sizeof(T)), sizeof(T));
    return value;
  }

  // Bytes that lie here already, and the first of them.
  std::size_t left() const { return static_cast<std::size_t>(end_ - next_); }
  std::uint8_t peek() const { return static_cast<std::uint8_t>(*next_); }

  // Of what comes next.
  std::uint64_t offset() const { return base_ + static_cast<std::uint64_t>(next_ - buffer_.data()); }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool fetch(std::size_t size) {
    std::size_t have = left();
    base_ = offset();
    std::memmove(buffer_.data(), next_, have);
    while (have < size && !error_ && !ended_) {
      if (have == buffer_.size()) buffer_.resize(std::min(size, 2 * have));
      const std::size_t room = buffer_.size() - have;
      const auto got = file_.read(buffer_.data() + have, room);
      if (!got) error_ = got.error();
      ended_ = got && *got < room;
      have += got.value_or(0);
    }
    next_ = buffer_.data();
    end_ = next_ + have;
    return have >= size;
  }

  TextFile& file_;
  std::vector<char> buffer_;
  const char *next_, *end_;
  std::uint64_t base_ = 0;  // offset of buffer_[0]
  bool ended_ = false;
  std::optional<Error> error_;
};

}  // namespace stepscope::formats
