// The content of a small file: settings, notes, what /proc says. Traces are read in pieces (formats/).
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace stepscope {

// As far as it can be read: a file of /proc goes away with its process, one on a network with its server, and an
// iterator over the file would throw then.
inline std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace stepscope
