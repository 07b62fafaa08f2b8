// Numbers in the texts of /proc and /sys.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stepscope::collect::telemetry {

// The next number from `at` on, which moves behind it; blanks before it are passed over. nullopt: something else.
inline std::optional<std::int64_t> next_number(std::string_view text, std::size_t& at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n')) at++;
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (read.ec != std::errc()) return std::nullopt;
  at = static_cast<std::size_t>(read.ptr - text.data());
  return value;
}

inline std::optional<std::int64_t> first_number(std::string_view text) {
  std::size_t at = 0;
  return next_number(text, at);
}

// The number behind `key` at the start of a line: "rchar: 12", "usage_usec 7", "MemFree:   5 kB".
inline std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::size_t behind = at + key.size();
    if (behind < text.size() && text[behind] == ':') behind++;
    if (behind >= text.size() || (text[behind] != ' ' && text[behind] != '\t')) continue;  // a longer key
    return next_number(text, behind);
  }
  return std::nullopt;
}

}  // namespace stepscope::collect::telemetry
