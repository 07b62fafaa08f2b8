// Columns of the picture of `stepscope live`.
#pragma once

#include <string>

#include "report/utf8.h"

namespace stepscope::cli {

// Pads to `width` columns of the terminal, to the left of a number.
inline std::string right(const std::string& text, std::size_t width) {
  const std::size_t taken = report::display_width(text);
  return std::string(taken < width ? width - taken : 0, ' ') + text;
}

}  // namespace stepscope::cli
