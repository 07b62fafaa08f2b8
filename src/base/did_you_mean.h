// "Did you mean": the error for a name that does not exist, with the nearest ones and the whole list.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope {

// Number of single-character edits between two texts (swaps of neighbours count as one).
std::size_t edit_distance(std::string_view a, std::string_view b);

// A usage error: "unknown answer 'kernel'; did you mean 'kernels'?", hint: the names there are.
Error unknown_name(std::string_view what, std::string_view name, std::span<const std::string_view> known);

}  // namespace stepscope
