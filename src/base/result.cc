#include "base/result.h"

namespace stepscope {

std::string to_text(const Error& error) {
  std::string text;
  if (!error.file.empty()) {
    text += error.file;
    if (error.offset) text += " (byte " + std::to_string(*error.offset) + ")";
    text += ": ";
  }
  text += error.message;
  if (!error.hint.empty()) {
    const std::size_t at = text.size() + (text.ends_with('?') ? 1 : 2);
    text += (text.ends_with('?') ? " " : ". ") + error.hint;
    if (text[at] >= 'a' && text[at] <= 'z') text[at] = static_cast<char>(text[at] - 'a' + 'A');
  }
  return text;
}

}  // namespace stepscope
