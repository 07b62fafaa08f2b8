// A whole text packed as one gzip member, fast rather than small.
#pragma once

#include <string>
#include <string_view>

namespace stepscope::formats {

// Up to 4 GB.
std::string gzip(std::string_view text);

}  // namespace stepscope::formats
