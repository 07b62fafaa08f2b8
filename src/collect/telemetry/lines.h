// Lines of texts and of files of any length; words of a line. Only paths are copied.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "collect/telemetry/kept_file.h"

namespace stepscope::collect::telemetry {

// The next line from `text`, which becomes the rest; without its end.
inline std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

// The next word from `text`, which becomes the rest; empty: there is none.
inline std::string_view next_word(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return text = {};
  text.remove_prefix(begin);
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

// Blanks in paths stand as \040 where the kernel lists mounts.
inline std::string unescaped(std::string_view text) {
  const auto octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

inline std::array<char, 64 << 10>& line_buffer() {
  static thread_local std::array<char, 64 << 10> buffer;
  return buffer;
}

// Calls `each` with all lines of a file that may be longer than one reading; of a line longer than the buffer with its
// beginning. Answers how many there were; 0: it cannot be read. Not to be called within `each`.
template <class Each>
std::size_t for_each_line(KeptFile& file, const Each& each) {
  std::array<char, 64 << 10>& buffer = line_buffer();
  constexpr std::size_t kMostBytes = 256 << 20;  // a file that never ends
  std::size_t lines = 0, held = 0, at = 0;
  bool cut = false;  // what comes is the rest of a line that was told already
  while (at < kMostBytes) {
    const std::size_t got = file.read_at(at, buffer.data() + held, buffer.size() - held);
    at += got;
    std::string_view rest(buffer.data(), held + got);
    while (!rest.empty()) {
      const bool is_whole = rest.find('\n') != rest.npos;
      if (!is_whole && got > 0 && rest.size() < buffer.size()) break;
      const std::string_view line = next_line(rest);
      if (!cut) {
        each(line);
        lines++;
      }
      cut = !is_whole;
    }
    if (got == 0) return lines;
    held = rest.size();
    std::memmove(buffer.data(), rest.data(), held);
  }
  return lines;
}

}  // namespace stepscope::collect::telemetry
