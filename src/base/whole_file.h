// The content of a small file: settings, notes, what /proc says. Traces are read in pieces (formats/).
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace stepscope {

// Empty where it cannot be read.
inline std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace stepscope
