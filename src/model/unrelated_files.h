// The code of the issue that every door says first: the files were opened as one job, and do not look like one.
#pragma once

#include <string_view>

namespace stepscope {

inline constexpr std::string_view kUnrelatedFiles = "unrelated_files";

}  // namespace stepscope
