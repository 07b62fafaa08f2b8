// How paths are named where a short name has to do.
#pragma once

#include <string>
#include <vector>

namespace stepscope {

// The last part of each path, and as many before it as tell it from the others of that name.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace stepscope
