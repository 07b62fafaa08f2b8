// Writing JSON by hand: only what the run folder's small files and the doctor's answer need.
#pragma once

#include <string>
#include <string_view>

namespace stepscope::run {

// `text` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD, so that the result is always valid.
std::string json_string(std::string_view text);

}  // namespace stepscope::run
