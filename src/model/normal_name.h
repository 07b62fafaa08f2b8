// Names without what differs between two calls of the same thing: step and call numbers, addresses.
//
//   "ProfilerStep#12"                     → "ProfilerStep#"
//   "aten::linear, seq = 45, op_id = 7"   → "aten::linear"
//   "lambda at 0x7f3a10"                  → "lambda at 0x"
#pragma once

#include <string>
#include <string_view>

namespace stepscope {

std::string normal_name(std::string_view name);

}  // namespace stepscope
