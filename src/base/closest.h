// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <span>
#include <string_view>

namespace stepscope {

// The candidate with the fewest edits (insert, delete, replace, swap of neighbors) from `word`, case ignored, or one
// that starts with it; empty when none is near enough to be what was meant.
std::string_view closest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace stepscope
