// What this build is: shown by --version and written into every report. The values come from CMake
// (cmake/version.cmake): the project's version and the commit that was checked out at configure time.
#pragma once

#include <string_view>

namespace stepscope {

std::string_view version();  // "0.1.0"
std::string_view commit();   // abbreviated hash; "unknown" when built outside a git checkout

// A hash of the sources that decide what a Trace holds (cmake/source_id.cmake).
std::string_view source_id();

}  // namespace stepscope
