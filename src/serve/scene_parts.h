// What the answers of a scene have in common.
#pragma once

#include <string_view>

#include "report/json_writer.h"

namespace stepscope::serve {

inline constexpr auto kLine = report::JsonWriter::Layout::line;
inline constexpr std::size_t kLongestName = 300;  // bytes of a name in a list; a slice by itself has all of it

inline std::string_view cut(std::string_view name) {
  if (name.size() <= kLongestName) return name;
  std::size_t size = kLongestName;
  while (size > 0 && (static_cast<unsigned char>(name[size]) & 0xc0) == 0x80) size--;
  return name.substr(0, size);
}

}  // namespace stepscope::serve
