// The row behind a slice again, as JSON: every column that has a value, ids of strings as the strings themselves.
#pragma once

#include "read/nsys_sqlite/export.h"

namespace stepscope::read::nsys {

Result<std::vector<std::string>> row_texts(const std::string& path, std::span<const std::uint64_t> places);

}  // namespace stepscope::read::nsys
