// UTF-8 as it comes from traces: mostly valid, sometimes not. Decoding never fails; every invalid byte is one U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepscope::report {

inline constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value;       // kReplacement for an invalid byte
  std::uint32_t bytes;  // length in the text, at least 1
  bool valid;
};

// The code point at `at`, which must be inside `text`. Overlong forms, surrogates and values over U+10FFFF are invalid.
CodePoint decode_at(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t value);
// `text` with every invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// Columns of a terminal that the text takes: 0 for combining marks, 2 for wide East Asian characters and emoji.
std::size_t display_width(std::string_view text);
// One line that is safe to print: control bytes (a name could hold a terminal's escape sequence) and invalid bytes
// become U+FFFD, tabs and line ends become a space.
std::string printable(std::string_view text);
// The nearest ASCII spelling, for terminals that show nothing else: "µs" is "us", bars are '#', other characters '?'.
std::string to_ascii(std::string_view text);

}  // namespace stepscope::report
