// Parts of the short texts that people write: options, tables, lines of /sys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepscope {

// Without the blanks around it.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// Letters only, lower case: "_allgather_base", "ALL_GATHER" and "AllGather" read alike.
inline std::string lower_letters(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') out += c;
  }
  return out;
}

// What stands between separators, each trimmed; of "" one part, which is empty.
inline std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(separator, at);
    parts.push_back(trimmed(text.substr(at, next == text.npos ? next : next - at)));
    if (next == text.npos) return parts;
    at = next + separator.size();
  }
}

}  // namespace stepscope
