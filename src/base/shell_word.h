// A text as one word that can be pasted into a shell.
#pragma once

#include <string>
#include <string_view>

namespace stepscope {

// Between single quotes, unless nothing in it means anything to a shell.
inline std::string shell_word(std::string_view text) {
  constexpr std::string_view harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(harmless) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') word += "'\\'";
    word += c;
  }
  return word + "'";
}

}  // namespace stepscope
