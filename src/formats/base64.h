// Base64: text that stands for bytes, four characters for three, taken piece by piece.
//
// It ends at the first character that is none of the 64: "=", a quote, the end of what holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepscope::formats {

class Base64 {
 public:
  // Writes the bytes that `text` completes, at most text.size() of them, and says how many.
  std::size_t decode(std::string_view text, char* out);
  bool ended() const { return ended_; }

 private:
  std::uint32_t bits_ = 0;  // the lowest `count_` are not written yet
  unsigned count_ = 0;
  bool ended_ = false;
};

}  // namespace stepscope::formats
