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
  if (!error.hint.empty()) text += (text.ends_with('?') ? " " : ". ") + error.hint;
  return text;
}

}  // namespace stepscope
