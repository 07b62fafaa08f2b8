// What can be opened, for --version and messages.
#pragma once

#include <string_view>
#include <vector>

namespace stepscope::session {

struct Format {
  std::string_view name;
  std::string_view summary;
};

std::vector<Format> formats();  // in the order in which they are tried

}  // namespace stepscope::session
