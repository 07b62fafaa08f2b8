// JsonStream: a JSON text of any size, walked from front to back with one window of it in memory.
//
// The caller follows the structure that it expects, member by member and element by element, and takes the values that
// it wants whole; what it does not know it skips. Its own control flow is the stack, so no nesting can exhaust
// anything. Memory is the window, or the largest value that was taken.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/text_file.h"

namespace stepscope::formats {

class JsonStream {
 public:
  static constexpr std::size_t kWindow = 1 << 20;
  static constexpr std::size_t kPadding = 64;             // readable bytes behind a value, as simdjson wants them
  static constexpr std::size_t kLargestValue = 64 << 20;  // larger ones are skipped, not kept

  enum class End : std::uint8_t {
    open,    // more can be read
    cut,     // the text ended inside an object, array or string
    broken,  // something stands where JSON cannot go on
    failed,  // the file could not be read on; see error()
  };

  explicit JsonStream(TextFile& file, std::size_t window = kWindow)
      : file_(file), window_(std::max<std::size_t>(window, 4)) {}

  // Steps into the object or array that comes next. False: something else comes next, which value() or skip() passes.
  bool enter_object() { return enter('{'); }
  bool enter_array() { return enter('['); }
  // Inside: is there a further member (its key, unescaped) or element? It must be entered, taken or skipped before the
  // next is asked for. False at the closing bracket, which is passed, and wherever the text cannot be read on.
  bool next_member(std::string& key);
  bool next_element();

  // The value that comes next, until the next call. Empty: it is not whole (see end()) or too large, and was passed.
  std::string_view value();
  void skip() { pass(false); }
  // On to the byte at `offset`, whatever stands between.
  void pass_to(std::uint64_t offset);

  std::uint64_t offset() const { return base_ + at_; }  // of what comes next
  End end() const { return end_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  bool enter(char bracket);
  int peek();  // the next byte that is no blank; -1: none
  bool behind_comma(char closing);
  std::size_t pass(bool keep);
  bool more();
  bool stop(End end);

  TextFile& file_;
  std::size_t window_;
  std::string buffer_;  // text and kPadding bytes
  std::size_t at_ = 0, have_ = 0;
  std::uint64_t base_ = 0;  // offset of buffer_[0]
  End end_ = End::open;
  std::optional<Error> error_;
};

}  // namespace stepscope::formats
